-- Kernels and pseudocode in Neovim, from 0.7 on: the language server, and the debugger in nvim-dap or in a terminal.
local M = {}

--- The program. Set it before the first kernel is opened: `require("wavesim").command = "/path/to/wavesim"`.
M.command = "wavesim"
--- Settings of the language server: arch, wave, liveRegisters, lastValues, maxInstructions.
M.settings = {}

-- Not `vim.filetype.add`, which Neovim 0.7 defines but does not use.
vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, { pattern = "*.rdna", command = "setfiletype rdna" })
vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, { pattern = "*.pcode", command = "setfiletype pcode" })

--- The documents that have been opened, by the address of their folder.
local clients = {}

--- Starts the language server for a buffer, or attaches the buffer to the one of its folder.
function M.attach(buffer)
  local file = vim.api.nvim_buf_get_name(buffer)
  if file == "" then return end
  local root = vim.fn.fnamemodify(file, ":p:h")
  local client = clients[root]
  if client == nil or vim.lsp.get_client_by_id(client) == nil then
    client = vim.lsp.start_client({
      name = "wavesim",
      cmd = { M.command, "lsp" },
      root_dir = root,
      init_options = next(M.settings) and M.settings or vim.empty_dict(),
    })
    clients[root] = client
  end
  if client then vim.lsp.buf_attach_client(buffer, client) end
end

vim.api.nvim_create_autocmd("FileType", {
  pattern = { "rdna", "pcode", "asm" },
  callback = function(event) M.attach(event.buf or tonumber(vim.fn.expand("<abuf>"))) end,
})

--- Debugs a file in a terminal, for those without nvim-dap. `options` are those of `wavesim debug`.
function M.debug_in_terminal(file, options)
  local command = vim.list_extend({ M.command, "debug" }, options or {})
  table.insert(command, file)
  vim.cmd("botright new")
  vim.fn.termopen(command)
  vim.cmd("startinsert")
end

vim.api.nvim_create_user_command("WavesimDebug", function(arguments)
  M.debug_in_terminal(vim.fn.expand("%:p"), arguments.fargs)
end, { nargs = "*", desc = "Debug this kernel in a terminal" })

local has_dap, dap = pcall(require, "dap")

-- The command of a code lens that the client carries out; the server carries out `wavesim.run` and `wavesim.check`.
vim.lsp.commands["wavesim.debug"] = function(command)
  local target = command.arguments[1]
  local file = vim.uri_to_fname(target.uri)
  if has_dap and not target.kernel then
    dap.run({ type = "wavesim", request = "launch", name = "Debug this kernel", program = file, stopOnEntry = true })
  elseif has_dap then
    dap.run(dap.configurations.asm[1])
  else
    M.debug_in_terminal(file)
  end
end

if has_dap then
  dap.adapters.wavesim = { type = "executable", command = M.command, args = { "dap" } }

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
end

return M
