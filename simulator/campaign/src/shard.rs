//! Parts of the work, for the jobs of an array.

/// A part of the cases of a campaign, or of the executions of an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub index: u64,
    /// The number of parts.
    pub count: u64,
}

impl Shard {
    /// All of them.
    pub const WHOLE: Shard = Shard { index: 1, count: 1 };

    /// Returns whether the item with this number, from 0, belongs to the part.
    pub fn has(self, item: u64) -> bool {
        item % self.count == self.index - 1
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((index, count)) if 1 <= index && index <= count && count <= 1 << 20 => {
                Ok(Shard { index, count })
            }
            _ => Err(format!("`{text}` is not a part such as 1/4: the first of four")),
        }
    }
}
