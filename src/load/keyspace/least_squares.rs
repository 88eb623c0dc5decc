#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FittedLine {
    pub(super) slope: f64,
    pub(super) at_zero: f64,
    /// The share of the variance that the line explains.
    pub(super) r_squared: f64,
}

/// Returns the line with the least squared distances to the points; `None` if they all have the
/// same x.
pub(super) fn least_squares(points: &[(f64, f64)]) -> Option<FittedLine> {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let about = |product: fn(f64, f64) -> f64| -> f64 {
        let each = points.iter().map(|(x, y)| product(x - mean_x, y - mean_y));
        each.sum()
    };
    let (xx, xy, yy) = (
        about(|x, _| x * x),
        about(|x, y| x * y),
        about(|_, y| y * y),
    );
    // For no points, this is NaN.
    if xx.is_nan() || xx <= 0.0 {
        return None;
    }
    let slope = xy / xx;
    Some(FittedLine {
        slope,
        at_zero: mean_y - slope * mean_x,
        r_squared: if yy > 0.0 { slope * xy / yy } else { 1.0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn points_on_a_line_give_that_line() {
        let points: Vec<(f64, f64)> = (0..10)
            .map(|x| (x.into(), 7.0 + 3.0 * f64::from(x)))
            .collect();
        let line = least_squares(&points).unwrap();
        assert!(near(line.slope, 3.0) && near(line.at_zero, 7.0) && near(line.r_squared, 1.0));
    }

    #[test]
    fn points_beside_a_line_are_as_far_above_as_below() {
        let line = least_squares(&[(0.0, 1.0), (1.0, 0.0), (2.0, 2.0), (3.0, 1.0)]).unwrap();
        assert!(near(line.slope, 0.2) && near(line.at_zero, 0.7), "{line:?}");
        assert!(near(line.r_squared, 0.1), "{line:?}");
    }

    #[test]
    fn without_two_places_there_is_no_line() {
        assert_eq!(least_squares(&[]), None);
        assert_eq!(least_squares(&[(1.0, 2.0)]), None);
        assert_eq!(least_squares(&[(1.0, 2.0), (1.0, 3.0)]), None);
        let level = least_squares(&[(1.0, 2.0), (2.0, 2.0)]).unwrap();
        assert!(near(level.slope, 0.0) && near(level.r_squared, 1.0));
    }
}
