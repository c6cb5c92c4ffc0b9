//! Numbers for values that come again and again.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::hash::Hash;

/// Numbers values from 0 on, equal ones alike.
#[derive(Clone, Debug)]
pub(crate) struct Interner<T> {
    numbers: HashMap<T, usize>,
    values: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner { numbers: HashMap::new(), values: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// Returns the number of a value, which is the next one if the value is new.
    pub(crate) fn number(&mut self, value: T) -> usize {
        let values = &mut self.values;
        *self.numbers.entry(value).or_insert_with_key(|value| {
            values.push(value.clone());
            values.len() - 1
        })
    }

    /// Returns the number of a value, or that of `other` if the value is new and there are `most` already.
    pub(crate) fn number_or(&mut self, value: T, most: usize, other: T) -> usize {
        let has_room = self.values.len() < most || self.numbers.contains_key(&value);
        self.number(if has_room { value } else { other })
    }

    /// Returns the value with that number.
    pub(crate) fn value(&self, number: usize) -> &T {
        &self.values[number]
    }

    /// Returns the values, each at the index that is its number.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_the_bound_share_a_number() {
        let mut names = Interner::default();
        let numbers = ["a", "b", "c", "a", "d"].map(|name| names.number_or(name, 2, "(other)"));
        assert_eq!(numbers, [0, 1, 2, 0, 2]);
        assert_eq!(names.values(), ["a", "b", "(other)"]);
    }
}
