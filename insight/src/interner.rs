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

    /// Returns the value with that number.
    pub(crate) fn value(&self, number: usize) -> &T {
        &self.values[number]
    }

    /// Returns the values, each at the index that is its number.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }
}
