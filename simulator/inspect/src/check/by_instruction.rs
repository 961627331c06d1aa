//! Values by instruction.

/// A value for some instructions of a program, given by their index. All values are dropped at once in constant time:
/// each wave that starts drops them, and programs of libraries have a hundred thousand instructions.
#[derive(Debug, Clone)]
pub struct ByInstruction<T> {
    /// Entries with another epoch have no value.
    epoch: u32,
    entries: Vec<(u32, T)>,
}

impl<T: Copy + Default> ByInstruction<T> {
    /// Returns no values, for a program of `count` instructions.
    pub fn new(count: usize) -> ByInstruction<T> {
        ByInstruction { epoch: 1, entries: vec![(0, T::default()); count] }
    }

    /// Returns an instruction's value.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<T> {
        self.entries.get(index).filter(|(epoch, _)| *epoch == self.epoch).map(|(_, value)| *value)
    }

    /// Sets or drops an instruction's value.
    #[inline]
    pub fn set(&mut self, index: usize, value: Option<T>) {
        if let Some(entry) = self.entries.get_mut(index) {
            *entry = match value {
                Some(value) => (self.epoch, value),
                None => (0, T::default()),
            };
        }
    }

    /// Drops all values.
    #[inline]
    pub fn clear(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.entries.fill((0, T::default()));
            self.epoch = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_dropped_at_once() {
        let mut values = ByInstruction::new(3);
        values.set(1, Some(7));
        assert_eq!([0, 1, 2, 3].map(|n| values.get(n)), [None, Some(7), None, None]);
        values.set(2, Some(8));
        values.set(1, None);
        assert_eq!([1, 2].map(|n| values.get(n)), [None, Some(8)]);
        values.clear();
        assert_eq!(values.get(2), None);
        // The counter wraps around: values of its earlier turns stay dropped.
        values.set(0, Some(9));
        values.epoch = u32::MAX;
        values.set(1, Some(1));
        values.clear();
        assert_eq!([0, 1, 2].map(|n| values.get(n)), [None; 3]);
    }
}
