use super::*;
use std::collections::hash_map::Entry;

/// A record, for one key, of the holds that have written and the last write of each.
///
/// The tokens of a healthy log only grow, so the usual case is one push to a vector; the
/// maps fill up only if a log goes wrong or has no tokens. That keeps the judge fast on
/// millions of rows.
#[derive(Default)]
pub(super) struct HoldBook {
    /// The tokens that were the highest so far, and the last row of each one's first owner.
    climbing: Vec<(FencingToken, usize)>,
    /// The same for tokens that arrived below the highest.
    late: HashMap<FencingToken, usize>,
    /// Second owners of a token, and holds without a token.
    others: HashMap<Hold, usize>,
}

/// The token and the owner, or only the owner if there is no token.
type Hold = (Option<FencingToken>, Option<Owner>);

/// The book's knowledge of a hold before the write that is being entered.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Before {
    /// The row in which this very hold wrote last.
    pub own_last: Option<usize>,
    /// A row in which another owner wrote with this token, reported once for each new
    /// owner.
    pub other_owner: Option<usize>,
}

impl HoldBook {
    /// Enters an accepted write. A row with neither token nor owner cannot be
    /// distinguished from any other hold and is left out.
    pub fn enter(&mut self, log: &[Row], index: usize) -> Before {
        let row = &log[index];
        let owner = row.owner;
        let again = |own_last| Before {
            own_last,
            other_owner: None,
        };
        let Some(token) = row.token else {
            return again(owner.and_then(|_| self.others.insert((None, owner), index)));
        };
        let Some(first_owners_last) = self.first_owners_last(token, index) else {
            return Before::default();
        };
        let first_owner = log[*first_owners_last].owner;
        if first_owner == owner {
            return again(Some(std::mem::replace(first_owners_last, index)));
        }
        let other = *first_owners_last;
        let own_last = self.others.insert((Some(token), owner), index);
        let both_known = first_owner.is_some() && owner.is_some();
        Before {
            own_last,
            other_owner: (own_last.is_none() && both_known).then_some(other),
        }
    }

    /// Returns the last row of the first owner of this token. A new token is entered for
    /// this row, and has no earlier row.
    fn first_owners_last(&mut self, token: FencingToken, index: usize) -> Option<&mut usize> {
        let Some(&(highest, _)) = self.climbing.last() else {
            self.climbing.push((token, index));
            return None;
        };
        if token > highest {
            self.climbing.push((token, index));
            return None;
        }
        if token == highest {
            return self.climbing.last_mut().map(|(_, last)| last);
        }
        match self.climbing.binary_search_by_key(&token, |&(t, _)| t) {
            Ok(found) => Some(&mut self.climbing[found].1),
            Err(_) => match self.late.entry(token) {
                Entry::Occupied(last) => Some(last.into_mut()),
                Entry::Vacant(place) => {
                    place.insert(index);
                    None
                }
            },
        }
    }
}
