-- Debug kernels with wavesim in nvim-dap.
local dap = require("dap")

-- Not `vim.filetype.add`, which Neovim 0.7 defines but does not use.
vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, { pattern = "*.rdna", command = "setfiletype rdna" })

dap.adapters.wavesim = { type = "executable", command = "wavesim", args = { "dap" } }

dap.configurations.rdna = {
  {
    type = "wavesim",
    request = "launch",
    name = "Debug this kernel",
    program = "${file}",
    stopOnEntry = true,
  },
}

-- Assembly files need launch parameters: vim.fn.input prompts for them.
dap.configurations.asm = {
  {
    type = "wavesim",
    request = "launch",
    name = "Debug this kernel",
    program = "${file}",
    grid = function() return { tonumber(vim.fn.input("workgroups: ", "1")) } end,
    block = function() return { tonumber(vim.fn.input("work-items in a workgroup: ", "32")) } end,
    args = function() return vim.split(vim.fn.input("arguments, separated by spaces: "), " ", { trimempty = true }) end,
    stopOnEntry = true,
  },
}
