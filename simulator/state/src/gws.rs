//! Global wave sync: resources by which waves of different workgroups meet (RDNA3 manual, *Global Wave Sync*; CDNA3
//! manual, DS_GWS_*).
//!
//! A resource is a barrier or a semaphore, whatever the last instruction made of it. The counter of a barrier is one less
//! than the number of waves that must still arrive: this is what ROCm's device libraries pass, and what the CDNA3 manual
//! computes. A semaphore releases waves in the order of their arrival.

/// Number of resources.
pub const RESOURCES: usize = 64;

/// The place in [`Wave::passed`](crate::Wave::passed) of what a wave has when it arrives at a resource.
pub const TICKET: usize = FIRST;

/// The first index of what waves wait for that is a resource: `FIRST + 2 * n` is resource `n` as a barrier,
/// `FIRST + 2 * n + 1` as a semaphore.
pub const FIRST: usize = 18;

/// The state of all resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gws([Resource; RESOURCES]);

impl Default for Gws {
    fn default() -> Gws {
        Gws([Resource::default(); RESOURCES])
    }
}

/// One resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resource {
    /// Waves that a barrier still needs, without the last one, or that a semaphore lets pass.
    pub counter: u32,
    /// Number of barriers that have completed.
    pub completed: u32,
    /// Number of waves that wait at the semaphore.
    pub waiting: u32,
    /// Number of waves that have ever waited there; the next one gets this number.
    arrived: u32,
    /// Number of waves that have been released there.
    released: u32,
}

/// Returns the resource that an index of what waves wait for stands for, and whether as a semaphore.
pub fn resource_of(index: usize) -> Option<(usize, bool)> {
    let at = index.checked_sub(FIRST)?;
    Some((at / 2, at % 2 == 1))
}

impl Gws {
    /// The state of a resource; numbers count modulo [`RESOURCES`].
    pub fn resource(&self, number: u32) -> &Resource {
        &self.0[number as usize % RESOURCES]
    }

    fn at(&mut self, number: u32) -> &mut Resource {
        &mut self.0[number as usize % RESOURCES]
    }

    /// Sets the counter.
    pub fn init(&mut self, number: u32, count: u32) {
        self.at(number).counter = count;
    }

    /// Lets `count` waves pass a semaphore: those that wait, then those that arrive.
    pub fn release(&mut self, number: u32, count: u32) {
        let resource = self.at(number);
        let now = count.min(resource.waiting);
        resource.waiting -= now;
        resource.released = resource.released.wrapping_add(now);
        resource.counter = resource.counter.saturating_add(count - now);
    }

    /// Lets all waves pass that wait at a semaphore.
    pub fn release_all(&mut self, number: u32) {
        self.release(number, self.resource(number).waiting);
    }

    /// A wave arrives at a semaphore. Returns its number if it must wait.
    pub fn acquire(&mut self, number: u32) -> Option<u32> {
        let resource = self.at(number);
        if resource.counter > 0 {
            resource.counter -= 1;
            return None;
        }
        let ticket = resource.arrived;
        resource.arrived = ticket.wrapping_add(1);
        resource.waiting += 1;
        Some(ticket)
    }

    /// A wave arrives at a barrier; `next` is the counter of the next one. Returns the number of the barrier if it must
    /// wait.
    pub fn arrive(&mut self, number: u32, next: u32) -> Option<u32> {
        let resource = self.at(number);
        if resource.counter as i32 <= 0 {
            resource.completed = resource.completed.wrapping_add(1);
            resource.counter = next;
            return None;
        }
        resource.counter -= 1;
        Some(resource.completed)
    }

    /// Whether a wave that waits at an index of [`FIRST`] and above with this ticket can go on.
    pub fn has_released(&self, index: usize, ticket: u32) -> bool {
        let Some((number, semaphore)) = resource_of(index) else { return false };
        let resource = self.resource(number as u32);
        match semaphore {
            true => resource.released.wrapping_sub(ticket) as i32 > 0,
            false => resource.completed != ticket,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_of_three_completes_with_the_last() {
        let mut gws = Gws::default();
        gws.init(5, 2);
        let (first, second) = (gws.arrive(5, 1).unwrap(), gws.arrive(5 + 64, 1).unwrap());
        assert!(!gws.has_released(FIRST + 10, first));
        assert_eq!(gws.arrive(5, 1), None);
        assert!(gws.has_released(FIRST + 10, first) && gws.has_released(FIRST + 10, second));
        // The next one is of two.
        let ticket = gws.arrive(5, 0).unwrap();
        assert!(!gws.has_released(FIRST + 10, ticket));
        assert_eq!(gws.arrive(5, 0), None);
        assert!(gws.has_released(FIRST + 10, ticket));
        assert_eq!(gws.arrive(5, 0), None, "one wave alone passes");
    }

    #[test]
    fn a_semaphore_releases_in_order() {
        let mut gws = Gws::default();
        gws.init(0, 1);
        assert_eq!(gws.acquire(0), None);
        let tickets: Vec<u32> = (0..3).map(|_| gws.acquire(0).unwrap()).collect();
        let free = |gws: &Gws| tickets.iter().map(|t| gws.has_released(FIRST + 1, *t)).collect::<Vec<_>>();
        assert_eq!(free(&gws), [false; 3]);
        gws.release(0, 1);
        assert_eq!(free(&gws), [true, false, false]);
        gws.release_all(0);
        assert_eq!(free(&gws), [true; 3]);
        assert_eq!(*gws.resource(0), Resource { arrived: 3, released: 3, ..Resource::default() });
        gws.release(0, 2);
        assert_eq!((gws.acquire(0), gws.acquire(0)), (None, None));
        assert!(gws.acquire(0).is_some());
        gws.release_all(1);
        assert_eq!(gws.resource(1).counter, 0, "nobody waits: no effect");
    }
}
