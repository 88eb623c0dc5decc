use crate::model::{FencingToken, Owner, Row};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Remembers, for one key, which holds have written and when each did last.
///
/// A healthy log only ever climbs, so the usual case is one push to a vector;
/// the maps fill up only where a log goes wrong or carries no tokens. That is
/// what keeps the judge fast on millions of rows.
#[derive(Default)]
pub(super) struct HoldBook {
    /// The tokens that were the highest so far, and the last row of each one's first owner.
    climbing: Vec<(FencingToken, usize)>,
    /// The same for tokens that arrived below the highest.
    late: HashMap<FencingToken, usize>,
    /// Second owners of a token, and holds without a token.
    others: HashMap<Hold, usize>,
}

/// The token and the owner, or the owner alone where there is no token.
type Hold = (Option<FencingToken>, Option<Owner>);

/// What the book knew about a hold before the write that is being entered.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Before {
    /// The row in which this very hold wrote last.
    pub own_last: Option<usize>,
    /// A row in which another owner wrote with this token, told once for each new owner.
    pub other_owner: Option<usize>,
}

impl HoldBook {
    /// Enters an accepted write. A row with neither token nor owner cannot be
    /// told from any other hold and is left out.
    pub fn enter(&mut self, log: &[Row], index: usize) -> Before {
        let row = &log[index];
        let owner = row.owner;
        let Some(token) = row.token else {
            let own_last = owner.and_then(|_| self.others.insert((None, owner), index));
            return Before {
                own_last,
                other_owner: None,
            };
        };
        let Some(first_owners_last) = self.first_owners_last(token, index) else {
            return Before::default();
        };
        let first_owner = log[*first_owners_last].owner;
        if first_owner == owner {
            let own_last = Some(std::mem::replace(first_owners_last, index));
            return Before {
                own_last,
                other_owner: None,
            };
        }
        let other = *first_owners_last;
        let own_last = self.others.insert((Some(token), owner), index);
        let both_known = first_owner.is_some() && owner.is_some();
        Before {
            own_last,
            other_owner: (own_last.is_none() && both_known).then_some(other),
        }
    }

    /// The last row of the first owner of this token; a token that is new is
    /// entered for this row, and there is nothing to say about it.
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
