//! The playground's engine as a WebAssembly module: [`Engine`] answers the requests of `wavesim_playground`.
//!
//! `cargo xtask build-web` builds it with the page in `web/page`. This crate only passes strings to and from JavaScript.

use wasm_bindgen::prelude::wasm_bindgen;
use wavesim_playground::Playground;

/// The engine behind one page.
#[wasm_bindgen]
#[derive(Default)]
pub struct Engine(Playground);

#[wasm_bindgen]
impl Engine {
    /// Creates an engine without a debugging session.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Engine {
        Engine::default()
    }

    /// Answers a request. Request and response are JSON.
    pub fn request(&mut self, request: &str) -> String {
        self.0.request(request)
    }
}
