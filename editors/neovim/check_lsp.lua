-- A headless session with the language server, without plugins, at the root of the repository:
--
--   nvim --headless --clean -c 'luafile editors/neovim/check_lsp.lua'
--
-- WAVESIM is the program. It types an error, reads its diagnostic, asks for hover, renames a register, runs the kernel,
-- and prints the results. Exit code 1: a check failed.
package.path = "editors/neovim/?.lua;" .. package.path
local wavesim = require("wavesim")
wavesim.command = vim.env.WAVESIM or "wavesim"

local failed = false
local function expect(what, found, wanted)
  print(what .. ": " .. vim.inspect(found))
  if not vim.deep_equal(found, wanted) then
    print("  expected: " .. vim.inspect(wanted))
    failed = true
  end
end

local function ask(method, params)
  local results, err = vim.lsp.buf_request_sync(0, method, params, 20000)
  if not results then
    print(method .. ": " .. tostring(err))
    vim.cmd("cquit")
  end
  local _, answer = next(results)
  return answer and answer.result, answer and answer.error
end

--- Waits for diagnostics, at most 20 seconds.
local function diagnostics(count)
  vim.wait(20000, function() return #vim.diagnostic.get(0) == count end, 20)
  return vim.diagnostic.get(0)
end

vim.cmd("edit examples/vector_add.rdna")
expect("file type", vim.bo.filetype, "rdna")
vim.wait(20000, function() return #vim.lsp.buf_get_clients(0) == 1 end, 20)
expect("clients", #vim.lsp.buf_get_clients(0), 1)

local line = vim.fn.search("v_add_f32")
local before = vim.fn.getline(line)
vim.fn.setline(line, "  v_ad_f32 v2, v2, v3")
local found = diagnostics(1)
expect("line of the error", found[1] and found[1].lnum, line - 1)
expect("suggestion", found[1] and found[1].message:match("v_add_f32"), "v_add_f32")
vim.fn.setline(line, before)
expect("errors", #diagnostics(0), 0)

local function at(column)
  vim.api.nvim_win_set_cursor(0, { line, column })
  return vim.lsp.util.make_position_params(0, "utf-16")
end
local hover = ask("textDocument/hover", at(4))
expect("hover", hover and hover.contents.value:match("D0.f32 = S0.f32 %+ S1.f32"), "D0.f32 = S0.f32 + S1.f32")
local rename = at(12)
rename.newName = "v9"
local edit = ask("textDocument/rename", rename)
vim.lsp.util.apply_workspace_edit(edit, "utf-16")
expect("renamed", vim.fn.getline(line), "  v_add_f32 v9, v2, v3")
expect("its use", vim.fn.getline(line + 1), "  global_store_b32 v1, v9, s[10:11]")
local lenses = ask("textDocument/codeLens", { textDocument = vim.lsp.util.make_text_document_params() })
expect("lenses", #lenses, 3)
local ran = ask("workspace/executeCommand", { command = lenses[1].command.command, arguments = lenses[1].command.arguments })
expect("output", ran and ran.outputs[1].name, "out_c")
expect("without nvim-dap", vim.fn.exists(":WavesimDebug"), 2)
print(failed and "failed" or "passed")
vim.cmd(failed and "cquit!" or "quitall!")
