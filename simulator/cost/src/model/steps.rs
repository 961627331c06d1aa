//! How the addresses of an access move from a workgroup to the next one.

use crate::record::Group;

/// By wave of a workgroup and by record: lines for each workgroup.
pub struct Steps(Vec<Vec<f32>>);

impl Steps {
    /// Compares the first two of `groups` whose numbers are `stride` apart.
    pub fn of(groups: &[Group], stride: u64) -> Steps {
        let pair = groups.windows(2).find(|pair| pair[1].number == pair[0].number + stride);
        let Some([a, b]) = pair.and_then(|pair| pair.first_chunk()) else { return Steps(Vec::new()) };
        let waves = a.waves.iter().zip(&b.waves).map(|(a, b)| {
            let step = |(x, y): (&crate::record::Record, &crate::record::Record)| {
                if x.index != y.index || x.lines == 0 || y.lines == 0 {
                    return 0.0;
                }
                let (from, to) = (a.lines.get(x.first as usize), b.lines.get(y.first as usize));
                let moved = from.zip(to).map_or(0.0, |(from, to)| to.number() as f64 - from.number() as f64);
                (moved / stride as f64) as f32
            };
            a.records.iter().zip(&b.records).map(step).collect()
        });
        Steps(waves.collect())
    }

    /// Returns the lines for each workgroup of a wave's record; 0 if that is not known.
    pub fn step(&self, wave: usize, record: usize) -> f64 {
        self.0.get(wave).and_then(|records| records.get(record)).map_or(0.0, |step| f64::from(*step))
    }
}
