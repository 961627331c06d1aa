// How the extension starts `wavesim`, without the editor's interface, so that a test can start it in the same way.

/** The files that the language server knows. It ignores assembly that is not for AMD GPUs. */
exports.documents = [
  { language: "rdna" },
  { language: "amdgpu" },
  { language: "pcode" },
  { scheme: "file", pattern: "**/*.s" },
  { scheme: "file", pattern: "**/*.as" },
];

/** The language server. */
exports.server = (path) => ({ command: path, args: ["lsp"] });

/** The debug adapter. */
exports.adapter = (path) => ({ command: path, args: ["dap"] });

/** The launch of the debugger for a kernel of a code lens. */
exports.debugged = (file, { kernel, grid, block, args } = {}) => {
  const launch = { type: "wavesim", request: "launch", name: "Debug this kernel", program: file, stopOnEntry: true };
  for (const [key, value] of Object.entries({ kernel, grid, block, args })) {
    if (value !== undefined && value !== null) launch[key] = value;
  }
  return launch;
};

/** Parses `4,2` to [4, 2]; undefined if it is something else. */
exports.dimensions = (text) => {
  const list = text.split(",").map((part) => Number(part.trim()));
  return list.length <= 3 && list.every((n) => Number.isInteger(n) && n > 0) ? list : undefined;
};
