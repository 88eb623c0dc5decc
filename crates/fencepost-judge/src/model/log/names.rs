use super::text::Text;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::ops::Range;

/// Names with their numbers: 0, 1, 2 … in the order in which they came. The names
/// themselves are in a [`Text`].
#[derive(Clone, Debug, Default)]
pub(super) struct NameTable {
    places: Vec<Range<usize>>,
    /// A hash table: empty, or a power of two of slots with room to spare. The slot of a
    /// name is the first one at or behind its hash that has its tag.
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Half of the hash, so that hardly any other name has to be compared, and none when
    /// the table grows.
    tag: u32,
    /// The number of the name, counted from 1; 0 is an empty slot.
    number: u32,
}

const FEWEST_SLOTS: usize = 16;

impl NameTable {
    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn name<'a>(&self, text: &'a Text, number: u32) -> &'a str {
        let name = text.get(self.places[number as usize].clone());
        str::from_utf8(name).expect("names are taken from text")
    }

    pub fn find(&self, text: &Text, name: &str) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.look_up(text, name.as_bytes(), tag_of(name.as_bytes()))
            .ok()
    }

    /// Returns the number of the name at this position, and gives it a new one if it has
    /// none yet.
    pub fn number(&mut self, text: &Text, place: Range<usize>) -> u32 {
        let tag = tag_of(text.get(place.clone()));
        self.number_of_tag(text, place, tag)
    }

    /// Returns the numbers of many names.
    ///
    /// Slots, places and names are far apart in memory. The processor can wait for many
    /// of them at once, as long as none depends on the one before.
    pub fn numbers(&mut self, text: &Text, names: Vec<Range<usize>>) -> Vec<u32> {
        let tags = names.iter().map(|name| tag_of(text.get(name.clone())));
        let tags: Vec<u32> = tags.collect();
        let slots = tags.iter().map(|tag| self.first_slot(*tag));
        let slots: Vec<Slot> = slots.collect();
        let likely = slots.iter().map(|slot| self.place_of(*slot));
        let likely: Vec<Range<usize>> = likely.collect();
        let found = names
            .into_iter()
            .zip(tags)
            .zip(slots.into_iter().zip(likely));
        let numbers = found.map(|((name, tag), (slot, likely))| {
            let is_found =
                slot.number != 0 && slot.tag == tag && text.get(likely) == text.get(name.clone());
            if is_found {
                slot.number - 1
            } else {
                self.number_of_tag(text, name, tag)
            }
        });
        numbers.collect()
    }

    fn first_slot(&self, tag: u32) -> Slot {
        let last = self.slots.len().saturating_sub(1);
        let slot = self.slots.get(tag as usize & last);
        slot.copied().unwrap_or_default()
    }

    /// Returns the position of a slot's name, which is empty for an empty slot.
    fn place_of(&self, slot: Slot) -> Range<usize> {
        let number = slot.number.wrapping_sub(1);
        let place = self.places.get(number as usize);
        place.cloned().unwrap_or_default()
    }

    fn number_of_tag(&mut self, text: &Text, place: Range<usize>, tag: u32) -> u32 {
        // Chains begin to grow long when the table is three quarters full.
        if self.places.len() >= self.slots.len() / 4 * 3 {
            self.grow();
        }
        match self.look_up(text, text.get(place.clone()), tag) {
            Ok(number) => number,
            Err(slot) => {
                self.places.push(place);
                let number = u32::try_from(self.places.len()).expect("fewer than 2^32 names");
                self.slots[slot] = Slot { tag, number };
                number - 1
            }
        }
    }

    /// Returns the number of the name, or the slot where it belongs.
    fn look_up(&self, text: &Text, name: &[u8], tag: u32) -> Result<u32, usize> {
        let last = self.slots.len() - 1;
        let mut at = tag as usize & last;
        loop {
            let slot = self.slots[at];
            if slot.number == 0 {
                return Err(at);
            }
            if slot.tag == tag {
                let number = slot.number - 1;
                if text.get(self.places[number as usize].clone()) == name {
                    return Ok(number);
                }
            }
            at = (at + 1) & last;
        }
    }

    fn grow(&mut self) {
        let count = (self.slots.len() * 2).max(FEWEST_SLOTS);
        let mut slots = Vec::with_capacity(count);
        slots.resize(count, Slot::default());
        let old = std::mem::replace(&mut self.slots, slots);
        for slot in old.into_iter().filter(|slot| slot.number != 0) {
            let mut at = slot.tag as usize & (count - 1);
            while self.slots[at].number != 0 {
                at = (at + 1) & (count - 1);
            }
            self.slots[at] = slot;
        }
    }
}

fn tag_of(name: &[u8]) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_numbers_while_the_table_grows() {
        let mut text = Text::default();
        let mut names = NameTable::default();
        assert_eq!(names.find(&text, "nobody"), None);
        for round in 0..2 {
            for n in 0..10_000_u32 {
                let place = text.add(format!("owner-{n}").as_bytes());
                assert_eq!(names.number(&text, place), n, "round {round}");
            }
        }
        assert_eq!(names.len(), 10_000);
        for n in 0..10_000 {
            let name = format!("owner-{n}");
            assert_eq!(names.name(&text, n), name);
            assert_eq!(names.find(&text, &name), Some(n));
        }
        assert_eq!(names.find(&text, "owner-10000"), None);
        assert_eq!(names.find(&text, ""), None);
    }
}
