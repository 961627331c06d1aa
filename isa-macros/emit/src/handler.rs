//! Emits the functions of one operation: one for each float mode and handler variant that it needs.

use super::{HANDLERS_PER_MODULE, Host};
use crate::body;
use crate::dispatch::Function;
use crate::name::slot;
use isa_lower::ir::{Body, Fast, Flushing, Halves, Handlers};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

/// Float modes with separately compiled handlers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nearest even, denormals kept.
    Keep,
    /// Nearest even, f32 denormals flushed.
    Flush,
    /// Any mode, on any host.
    Base,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Keep => "keep",
            Mode::Flush => "flush",
            Mode::Base => "base",
        }
    }
}

/// Returns the name of the function that runs an operation in a mode. Operations without f32 share one
/// function between the two modes that differ only in f32.
fn function(at: usize, handlers: &Handlers, mode: Mode) -> Ident {
    let own = if mode == Mode::Flush && !handlers.floats_f32 { Mode::Keep } else { mode };
    format_ident!("op{at}_{}", own.name())
}

/// Returns the functions that run an operation in a mode, by `Variant`. In wave64, functions for 32
/// lanes run twice.
pub fn variants(index: usize, handlers: &Handlers, mode: Mode, wave64: bool) -> [Function; 3] {
    let fast = function(index, handlers, mode);
    let own = |name: Ident| Function::Own { module: index / HANDLERS_PER_MODULE, name };
    let all = |function: Function| [function.clone(), function.clone(), function];
    if mode == Mode::Base {
        return all(if handlers.shared { Function::Shared } else { own(fast) });
    }
    let general = if handlers.general_uses_fast {
        Function::Common("general")
    } else {
        own(format_ident!("{fast}_general"))
    };
    let fast = own(fast);
    match &handlers.fast {
        Fast::Lanes(_) if wave64 => {
            [general, Function::Common("both_halves"), Function::Common("both_halves_broadcast")]
        }
        _ if wave64 && processes_half(handlers) => all(Function::Common("each_half")),
        Fast::None => all(fast),
        Fast::Lanes(_) => [general, fast, Function::Common("broadcast_first")],
        Fast::Scalar(_) | Fast::Block(_) => [general.clone(), fast, general],
    }
}

/// Returns whether the general handler processes one half of a wave, because it has memory steps.
fn processes_half(handlers: &Handlers) -> bool {
    matches!(&handlers.general, Body::Lanes(lanes) if lanes.halves == Halves::Given)
}

/// Emits all functions of an operation for a host.
pub fn handler(at: usize, handlers: &Handlers, host: Host) -> TokenStream {
    let halved = processes_half(handlers);
    if host == Host::Any && handlers.shared {
        let line = format!("{} is the same for all hosts.", handlers.name);
        return quote! { #[doc = #line] const _: () = (); };
    }
    let body = match &handlers.general {
        Body::Lanes(lanes) => body::lanes(lanes, &handlers.locals),
        Body::Once(once) => body::once(once, &handlers.locals),
    };
    let general = format_ident!("op{at}");
    let doc = format!("{} ({:?}).", handlers.name, handlers.shape);
    let half = halved.then(|| quote! { , half: usize });
    let mut out = quote! {
        #[doc = #doc]
        #[inline(always)]
        unsafe fn #general<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M #half) -> Flow { #body }
    };
    let fast = match &handlers.fast {
        Fast::Lanes(lanes) => Some(body::lanes(lanes, &handlers.locals)),
        Fast::Scalar(once) => Some(body::once(once, &handlers.locals)),
        Fast::None | Fast::Block(_) => None,
    };
    let body = format_ident!("fast{at}");
    let fast = fast.map(|fast| {
        quote! {
            #[inline(always)]
            unsafe fn #body<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M) -> Flow { #fast }
        }
    });
    // If the operation has only the fast body, that gets the doc line.
    if handlers.general_uses_fast {
        out = quote! { #[doc = #doc] #fast };
    } else if host == Host::Avx2 {
        out.extend(fast);
    }
    if host == Host::Any {
        out.extend(any_mode(at, handlers, halved));
        return out;
    }
    let [keep, flush] = [Mode::Keep, Mode::Flush].map(|mode| function(at, handlers, mode));
    let functions = Functions { at, handlers, halved };
    out.extend(functions.of(&keep, quote! { let m = Keep; }, None));
    if flush != keep {
        out.extend(functions.of(&flush, quote! { let m = Flush; }, handlers.flushing.as_ref()));
    }
    out
}

/// Emits the function for any float mode. It is compiled once: rounding modes other than the default are too
/// rare for a third set of vector code. Operations without floats have the mode, too: in all others, builtins use SIMD
/// instructions that the host may lack.
fn any_mode(at: usize, handlers: &Handlers, halved: bool) -> TokenStream {
    let (name, general) = (function(at, handlers, Mode::Base), format_ident!("op{at}"));
    let mode = quote! { cx.general };
    if handlers.general_uses_fast {
        let (body, half) = (format_ident!("fast{at}"), format_ident!("{name}_half"));
        return quote! {
            unsafe fn #half(cx: &mut Cx<'_>, op: &Op) -> Flow {
                let m = #mode;
                unsafe { #body(cx, op, &m) }
            }
            pub unsafe fn #name(cx: &mut Cx<'_>, op: &Op) -> Flow { unsafe { rt::any_variant(cx, op, #half) } }
        };
    }
    let first = halved.then(|| quote! { , 0 });
    let both = halved.then(|| {
        quote! {
            if cx.wave.halves() == 2 {
                let flow = unsafe { #general(cx, op, &m, 0) };
                return if flow == Flow::NEXT { unsafe { #general(cx, op, &m, 1) } } else { flow };
            }
        }
    });
    quote! {
        pub unsafe fn #name(cx: &mut Cx<'_>, op: &Op) -> Flow {
            let m = #mode;
            #both
            unsafe { #general(cx, op, &m #first) }
        }
    }
}

/// Emitter of the functions of one operation on hosts with SIMD vectors.
struct Functions<'a> {
    at: usize,
    handlers: &'a Handlers,
    halved: bool,
}

impl Functions<'_> {
    /// Emits the functions for a mode. `flushing` describes the f32 sources of the fast handler, in modes in
    /// which denormals count as zeros.
    fn of(&self, name: &Ident, mode: TokenStream, flushing: Option<&Flushing>) -> TokenStream {
        let features = features();
        let general = format_ident!("op{}", self.at);
        if self.halved {
            return self.halves(name, &mode);
        }
        if self.handlers.fast == Fast::None {
            let features = (!self.handlers.shared).then_some(features);
            return quote! {
                #features
                pub unsafe fn #name(cx: &mut Cx<'_>, op: &Op) -> Flow { #mode unsafe { #general(cx, op, &m) } }
            };
        }
        let body = format_ident!("fast{}", self.at);
        let slow = format_ident!("{name}_general");
        // The first function uses only the registers of the body: all its calls of other functions are tail
        // calls.
        let (fast, rest) = match flushing {
            None => (quote! { #mode unsafe { #body(cx, op, &m) } }, quote! {}),
            Some(flushing) => self.flushing(name, &mode, flushing),
        };
        let own_general = (!self.handlers.general_uses_fast).then(|| {
            quote! {
                #features
                pub unsafe fn #slow(cx: &mut Cx<'_>, op: &Op) -> Flow { #mode unsafe { #general(cx, op, &m) } }
            }
        });
        quote! {
            #features
            pub unsafe fn #name(cx: &mut Cx<'_>, op: &Op) -> Flow { #fast }
            #rest
            #own_general
        }
    }

    /// Emits a fast path for sources known to have no denormals, such as results of flushing operations, and
    /// a slow path that searches the others for denormals.
    fn flushing(&self, name: &Ident, mode: &TokenStream, flushing: &Flushing) -> (TokenStream, TokenStream) {
        let (features, body) = (features(), format_ident!("fast{}", self.at));
        let sources: Vec<TokenStream> = flushing.sources.iter().map(|at| slot(*at)).collect();
        let mode_of_results = if flushing.direct {
            quote! { FlushVecs }
        } else {
            quote! { FlushOut }
        };
        let slow = format_ident!("{name}_slow");
        let first = quote! {
            if unsafe { rt::have_no_denormals(cx.file, [#(#sources),*]) } {
                let m = #mode_of_results;
                return unsafe { #body(cx, op, &m) };
            }
            unsafe { #slow(cx, op) }
        };
        let second = quote! {
            #features
            #[inline(never)]
            unsafe fn #slow(cx: &mut Cx<'_>, op: &Op) -> Flow {
                if unsafe { rt::search_denormals(cx.file, [#(#sources),*]) } {
                    return unsafe { #name(cx, op) };
                }
                #mode
                rt::tail_call(unsafe { #body(cx, op, &m) })
            }
        };
        (first, second)
    }

    fn halves(&self, name: &Ident, mode: &TokenStream) -> TokenStream {
        let (features, general) = (features(), format_ident!("op{}", self.at));
        let (any, block) = match &self.handlers.fast {
            Fast::Block(block) => {
                let (any, watched) = (format_ident!("{name}_general"), format_ident!("{name}_watched"));
                let (address64, watched_address64) =
                    (format_ident!("{name}_wide"), format_ident!("{name}_watched_wide"));
                let (address64_moved, address64_seen) = (
                    body::address64_block(block, false, &watched_address64),
                    body::address64_block(block, true, &any),
                );
                let has_address64 = address64_moved.is_some();
                let moved =
                    body::block(block, false, &watched, if has_address64 { &address64 } else { &any });
                let seen = body::block(block, true, &any, &any);
                let address64 = address64_moved.map(|moved| {
                    quote! {
                        #features
                        #[inline(never)]
                        unsafe fn #address64(cx: &mut Cx<'_>, op: &Op) -> Flow { #moved }
                        #features
                        #[cold]
                        #[inline(never)]
                        unsafe fn #watched_address64(cx: &mut Cx<'_>, op: &Op) -> Flow {
                            if cx.watch.is_none() {
                                return unsafe { #any(cx, op) };
                            }
                            #address64_seen
                        }
                    }
                });
                let block = quote! {
                    #address64
                    #features
                    pub unsafe fn #name(cx: &mut Cx<'_>, op: &Op) -> Flow { #moved }
                    #features
                    #[cold]
                    #[inline(never)]
                    unsafe fn #watched(cx: &mut Cx<'_>, op: &Op) -> Flow {
                        if cx.watch.is_none() {
                            return unsafe { #any(cx, op) };
                        }
                        #seen
                    }
                };
                (any, block)
            }
            Fast::None | Fast::Lanes(_) | Fast::Scalar(_) => (name.clone(), quote! {}),
        };
        quote! {
            #block
            #features
            #[inline(never)]
            pub unsafe fn #any(cx: &mut Cx<'_>, op: &Op) -> Flow {
                #mode
                unsafe { #general(cx, op, &m, cx.half()) }
            }
        }
    }
}

fn features() -> TokenStream {
    quote! {
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt"))]
    }
}
