//! Parameters of nodes, as the program has passed them; nodes of events and of variables; properties of nodes.

use super::node::{FillNode, KernelNode, add_step};
use super::{Node, Step, ValuesNode, with};
use crate::copy::Parameters3d;
use crate::copy_driver::DriverParameters3d;
use crate::ffi::{HostFunction, In, Memory, Out};
use crate::gpu::{gpu, lock};
use crate::module::variable_part;
use crate::op::{Copy, Invocation, Op, Work};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::{c_int, c_uint};

/// What the program has passed for a node.
pub(super) enum Given {
    /// The parameters of a kernel, with a copy of its arguments.
    Kernel(GivenKernel),
    /// Those of a copy.
    Copy(Parameters3d),
    /// Those of a copy of the driver API.
    DriverCopy(DriverParameters3d),
    /// `hipMemcpyKind` of a copy of one dimension, or to or from a variable.
    Kind(c_int),
    /// Operations on values in memory.
    Values(ValuesNode),
}

/// The parameters of a kernel. Their pointers are those of the copy.
pub(super) struct GivenKernel {
    parameters: KernelNode,
    /// Pointers to the arguments, in `_values`.
    pointers: Vec<Memory>,
    _values: Vec<u8>,
}

// SAFETY: the pointers refer to memory that the value owns and that nothing changes.
unsafe impl Send for GivenKernel {}
// SAFETY: as above.
unsafe impl Sync for GivenKernel {}

impl Given {
    pub(super) fn kernel(parameters: KernelNode, invocation: &Invocation) -> Given {
        let mut values = invocation.explicit.clone();
        let last = invocation.kernel.arguments().map(|argument| argument.offset + argument.size).max();
        values.resize(values.len().max(last.unwrap_or(0) as usize), 0);
        let at = |offset: u64| values.as_ptr() as u64 + offset;
        // SAFETY: every argument is inside of the values, which are kept with the pointers.
        let pointer = |offset: u64| unsafe { Memory::at(at(offset)) };
        let pointers =
            invocation.kernel.arguments().map(|argument| pointer(argument.offset.into())).collect();
        Given::Kernel(GivenKernel { parameters, pointers, _values: values })
    }

    /// Returns `hipMemcpyKind` of a copy.
    fn copy_kind(&self) -> Option<c_int> {
        match self {
            Given::Copy(copy) => Some(copy.kind()),
            Given::Kind(kind) => Some(*kind),
            _ => None,
        }
    }
}

impl Node {
    /// Replaces what the node does.
    pub(super) fn set(&mut self, work: Work, given: Option<Given>) {
        self.step = Step::Work(work);
        self.given = given.map(std::sync::Arc::new);
        self.apply_attributes();
    }

    /// Replaces a copy of an instantiated graph, whose `hipMemcpyKind` must not change.
    pub(super) fn set_copy(&mut self, work: Work, given: Given) -> Outcome {
        let kind = self.given.as_deref().and_then(Given::copy_kind);
        if kind.is_some_and(|kind| given.copy_kind() != Some(kind)) {
            return Err(
                Status::INVALID_VALUE.because("the direction of a copy changes in an instantiated graph")
            );
        }
        self.set(work, Some(given));
        Ok(())
    }

    /// Returns the operation of a node that is neither a graph nor an event.
    pub(super) fn op(&self) -> Outcome<&Op> {
        match &self.step {
            Step::Work(work) => Ok(work.op()),
            _ => Err(Status::INVALID_VALUE.because("the node is of another type")),
        }
    }
}

/// `hipGraphKernelNodeGetParams`. The arguments are valid while the node has them.
pub unsafe extern "C" fn hipGraphKernelNodeGetParams(node: Handle, parameters: Out<KernelNode>) -> c_int {
    call("hipGraphKernelNodeGetParams", || {
        let given = with(|graphs| graphs.edit(node, |node| node.given.clone()))?;
        match given.as_deref() {
            Some(Given::Kernel(kernel)) => {
                // SAFETY: there is a pointer for each argument of the kernel.
                let pointers = unsafe { In::of(&kernel.pointers) };
                parameters.put(kernel.parameters.with_arguments(pointers))
            }
            _ => Err(Status::INVALID_VALUE.because("not a node that hipGraphAddKernelNode has added")),
        }
    })
}

/// `hipGraphMemsetNodeGetParams`.
pub unsafe extern "C" fn hipGraphMemsetNodeGetParams(node: Handle, parameters: Out<FillNode>) -> c_int {
    call("hipGraphMemsetNodeGetParams", || {
        let fill = with(|graphs| {
            graphs.edit(node, |node| match node.op()? {
                Op::Fill(fill) => Ok(*fill),
                _ => Err(Status::INVALID_VALUE.into()),
            })?
        })?;
        parameters.put(FillNode::of(&fill))
    })
}

/// `hipGraphHostNodeGetParams`.
pub unsafe extern "C" fn hipGraphHostNodeGetParams(node: Handle, parameters: Out<HostFunction>) -> c_int {
    call("hipGraphHostNodeGetParams", || {
        let function = with(|graphs| {
            graphs.edit(node, |node| match node.op()? {
                Op::Host(function) => Ok(*function),
                _ => Err(Status::INVALID_VALUE.into()),
            })?
        })?;
        parameters.put(function)
    })
}

/// `hipGraphMemcpyNodeGetParams`.
pub unsafe extern "C" fn hipGraphMemcpyNodeGetParams(node: Handle, parameters: Out<Parameters3d>) -> c_int {
    call("hipGraphMemcpyNodeGetParams", || {
        parameters.put(with(|graphs| {
            graphs.edit(node, |node| match (node.given.as_deref(), node.op()?) {
                (Some(Given::Copy(given)), _) => Ok(*given),
                (_, Op::Copy(copy)) => Ok(Parameters3d::of(copy)),
                _ => Err(Status::INVALID_VALUE.into()),
            })?
        })?)
    })
}

/// Returns a copy that a node performs.
///
/// # Safety
/// The memory is valid whenever the copy runs.
unsafe fn copy_of(parameters: In<Parameters3d>) -> Outcome<(Work, Given)> {
    let given = parameters.get()?;
    // SAFETY: the caller guarantees it.
    Ok((unsafe { Work::new(Op::Copy(given.checked()?)) }, Given::Copy(given)))
}

/// `hipGraphAddMemcpyNode`.
pub unsafe extern "C" fn hipGraphAddMemcpyNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    parameters: In<Parameters3d>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { after.array(count) };
    call("hipGraphAddMemcpyNode", || {
        // SAFETY: the caller of the API keeps the memory valid while the graph runs.
        let (work, given) = unsafe { copy_of(parameters)? };
        add_step(&node, graph, after, Step::Work(work), Some(given))
    })
}

/// `hipGraphMemcpyNodeSetParams`.
pub unsafe extern "C" fn hipGraphMemcpyNodeSetParams(node: Handle, parameters: In<Parameters3d>) -> c_int {
    call("hipGraphMemcpyNodeSetParams", || {
        // SAFETY: the caller of the API keeps the memory valid while the graph runs.
        let (work, given) = unsafe { copy_of(parameters)? };
        with(|graphs| graphs.edit(node, |node| node.set(work, Some(given))))
    })
}

/// `hipGraphExecMemcpyNodeSetParams`.
pub unsafe extern "C" fn hipGraphExecMemcpyNodeSetParams(
    executable: Handle,
    node: Handle,
    parameters: In<Parameters3d>,
) -> c_int {
    call("hipGraphExecMemcpyNodeSetParams", || {
        // SAFETY: the caller of the API keeps the memory valid while the graph runs.
        let (work, given) = unsafe { copy_of(parameters)? };
        with(|graphs| graphs.edit_executable(executable, node, |node| node.set_copy(work, given))?)
    })
}

/// The side of a copy that is a variable, and the program's memory.
struct Symbol {
    symbol: usize,
    other: Memory,
    len: usize,
    offset: usize,
    kind: c_int,
}

impl Symbol {
    /// Returns the copy that a node performs from now on, which is not empty.
    ///
    /// # Safety
    /// As for [`Symbol::work`].
    unsafe fn changed(self, to_symbol: bool) -> Outcome<Work> {
        if self.len == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller guarantees it.
        unsafe { self.work(to_symbol) }
    }

    /// Returns the copy to or from the variable.
    ///
    /// # Safety
    /// The memory is valid whenever the copy runs.
    unsafe fn work(self, to_symbol: bool) -> Outcome<Work> {
        let variable = variable_part(self.symbol, self.offset, self.len)?;
        let (to, from) = if to_symbol { (variable, self.other) } else { (self.other, variable) };
        let copy = Copy::linear(to, from, self.len);
        crate::copy::check(gpu()?, &copy, self.kind)?;
        // SAFETY: the caller guarantees it.
        Ok(unsafe { Work::new(Op::Copy(copy)) })
    }
}

macro_rules! symbols {
    ($($to_symbol:literal: $add:ident, $set:ident, $set_executable:ident ($first:ident: $first_type:ty, $second:ident: $second_type:ty);)*) => {
        $(
            #[doc = concat!("`", stringify!($add), "`.")]
            #[allow(clippy::too_many_arguments, reason = "the C API's")]
            pub unsafe extern "C" fn $add(
                node: Out<Handle>,
                graph: Handle,
                after: In<Handle>,
                count: usize,
                $first: $first_type,
                $second: $second_type,
                len: usize,
                offset: usize,
                kind: c_int,
            ) -> c_int {
                // SAFETY: the caller of the API passes an array of this length.
                let after = unsafe { after.array(count) };
                call(stringify!($add), || {
                    // SAFETY: the caller of the API keeps the memory valid while the graph runs.
                    let work = unsafe { Symbol { $first, $second, len, offset, kind }.work($to_symbol)? };
                    add_step(&node, graph, after, Step::Work(work), Some(Given::Kind(kind)))
                })
            }

            #[doc = concat!("`", stringify!($set), "`.")]
            pub unsafe extern "C" fn $set(
                node: Handle,
                $first: $first_type,
                $second: $second_type,
                len: usize,
                offset: usize,
                kind: c_int,
            ) -> c_int {
                call(stringify!($set), || {
                    // SAFETY: the caller of the API keeps the memory valid while the graph runs.
                    let work = unsafe { Symbol { $first, $second, len, offset, kind }.changed($to_symbol)? };
                    with(|graphs| graphs.edit(node, |node| node.set(work, Some(Given::Kind(kind)))))
                })
            }

            #[doc = concat!("`", stringify!($set_executable), "`.")]
            #[allow(clippy::too_many_arguments, reason = "the C API's")]
            pub unsafe extern "C" fn $set_executable(
                executable: Handle,
                node: Handle,
                $first: $first_type,
                $second: $second_type,
                len: usize,
                offset: usize,
                kind: c_int,
            ) -> c_int {
                call(stringify!($set_executable), || {
                    // SAFETY: the caller of the API keeps the memory valid while the graph runs.
                    let work = unsafe { Symbol { $first, $second, len, offset, kind }.changed($to_symbol)? };
                    let given = Given::Kind(kind);
                    with(|graphs| graphs.edit_executable(executable, node, |node| node.set_copy(work, given))?)
                })
            }
        )*
    };
}

symbols! {
    true: hipGraphAddMemcpyNodeToSymbol, hipGraphMemcpyNodeSetParamsToSymbol,
        hipGraphExecMemcpyNodeSetParamsToSymbol (symbol: usize, other: Memory);
    false: hipGraphAddMemcpyNodeFromSymbol, hipGraphMemcpyNodeSetParamsFromSymbol,
        hipGraphExecMemcpyNodeSetParamsFromSymbol (other: Memory, symbol: usize);
}

/// Whether a node records an event or waits for it.
#[derive(Clone, Copy)]
pub(super) enum EventNode {
    Record,
    Wait,
}

impl EventNode {
    /// Returns what a node does with an event.
    pub(super) fn step(self, event: Handle) -> Outcome<Step> {
        gpu()?.streams.event(event).map_err(|_| Status::INVALID_VALUE)?;
        Ok(match self {
            EventNode::Record => Step::Record(event),
            EventNode::Wait => Step::Wait(event),
        })
    }

    /// Returns the place of the event in a node of this type.
    fn event(self, node: &mut Node) -> Outcome<&mut Handle> {
        match (self, &mut node.step) {
            (EventNode::Record, Step::Record(event)) | (EventNode::Wait, Step::Wait(event)) => Ok(event),
            _ => Err(Status::INVALID_VALUE.because("the node is of another type")),
        }
    }
}

macro_rules! events {
    ($($kind:ident: $add:ident, $get:ident, $set:ident, $set_executable:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($add), "`.")]
            pub unsafe extern "C" fn $add(
                node: Out<Handle>,
                graph: Handle,
                after: In<Handle>,
                count: usize,
                event: Handle,
            ) -> c_int {
                // SAFETY: the caller of the API passes an array of this length.
                let after = unsafe { after.array(count) };
                call(stringify!($add), || add_step(&node, graph, after, EventNode::$kind.step(event)?, None))
            }

            #[doc = concat!("`", stringify!($get), "`.")]
            pub unsafe extern "C" fn $get(node: Handle, event: Out<Handle>) -> c_int {
                call(stringify!($get), || {
                    event.put(with(|graphs| graphs.edit(node, |node| Ok(*EventNode::$kind.event(node)?))?)?)
                })
            }

            #[doc = concat!("`", stringify!($set), "`.")]
            pub unsafe extern "C" fn $set(node: Handle, event: Handle) -> c_int {
                call(stringify!($set), || {
                    EventNode::$kind.step(event)?;
                    with(|graphs| {
                        graphs.edit(node, |node| {
                            *EventNode::$kind.event(node)? = event;
                            Ok(())
                        })?
                    })
                })
            }

            #[doc = concat!("`", stringify!($set_executable), "`.")]
            pub unsafe extern "C" fn $set_executable(executable: Handle, node: Handle, event: Handle) -> c_int {
                call(stringify!($set_executable), || {
                    EventNode::$kind.step(event)?;
                    with(|graphs| {
                        graphs.edit_executable(executable, node, |node| {
                            *EventNode::$kind.event(node)? = event;
                            Ok(())
                        })?
                    })
                })
            }
        )*
    };
}

events! {
    Record: hipGraphAddEventRecordNode, hipGraphEventRecordNodeGetEvent, hipGraphEventRecordNodeSetEvent,
        hipGraphExecEventRecordNodeSetEvent;
    Wait: hipGraphAddEventWaitNode, hipGraphEventWaitNodeGetEvent, hipGraphEventWaitNodeSetEvent,
        hipGraphExecEventWaitNodeSetEvent;
}

/// `hipGraphChildGraphNodeGetGraph`.
pub unsafe extern "C" fn hipGraphChildGraphNodeGetGraph(node: Handle, graph: Out<Handle>) -> c_int {
    call("hipGraphChildGraphNodeGetGraph", || {
        graph.put(with(|graphs| {
            graphs.edit(node, |node| match node.step {
                Step::Graph(child, _) => Ok(child),
                _ => Err(Status::INVALID_VALUE.into()),
            })?
        })?)
    })
}

/// `hipGraphNodeFindInClone`.
pub unsafe extern "C" fn hipGraphNodeFindInClone(
    node: Out<Handle>,
    original: Handle,
    clone: Handle,
) -> c_int {
    call("hipGraphNodeFindInClone", || {
        let graph = with(|graphs| graphs.graph(clone))?;
        let found = lock(&graph).nodes.iter().find(|node| node.origin == original).map(|node| node.handle);
        node.put(found.filter(|found| *found != original).ok_or(Status::INVALID_VALUE)?)
    })
}

/// Only kernels, copies and fills can be disabled.
fn can_be_disabled(node: &Node) -> bool {
    matches!(node.op(), Ok(Op::Kernel(_) | Op::Copy(_) | Op::Fill(_)))
}

/// `hipGraphNodeSetEnabled`.
pub unsafe extern "C" fn hipGraphNodeSetEnabled(executable: Handle, node: Handle, enabled: c_uint) -> c_int {
    call("hipGraphNodeSetEnabled", || {
        with(|graphs| {
            graphs.edit_executable(executable, node, |node| {
                if !can_be_disabled(node) {
                    return Err(Status::INVALID_VALUE.into());
                }
                node.enabled = enabled != 0;
                Ok(())
            })?
        })
    })
}

/// `hipGraphNodeGetEnabled`.
pub unsafe extern "C" fn hipGraphNodeGetEnabled(
    executable: Handle,
    node: Handle,
    enabled: Out<c_uint>,
) -> c_int {
    call("hipGraphNodeGetEnabled", || {
        enabled.put(with(|graphs| {
            graphs.edit_executable(executable, node, |node| {
                if can_be_disabled(node) {
                    Ok(node.enabled.into())
                } else {
                    Err(Status::INVALID_VALUE.into())
                }
            })?
        })?)
    })
}
