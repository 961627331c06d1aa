-- A headless session with nvim-dap, at the root of the repository:
--
--   nvim --headless --clean --cmd 'set rtp+=NVIM_DAP,editors/neovim' -c 'luafile editors/neovim/check.lua'
--
-- It sets a breakpoint, runs to it, reads a lane, steps back, and prints the results. Exit code 1: a check failed.
package.path = "editors/neovim/?.lua;" .. package.path
require("wavesim")
local dap = require("dap")
dap.adapters.wavesim.command = vim.env.WAVESIM or "wavesim"

local failed = false
local function expect(what, found, wanted)
  print(what .. ": " .. tostring(found))
  if not vim.deep_equal(found, wanted) then
    print("  expected: " .. tostring(wanted))
    failed = true
  end
end

local stops = {}
dap.listeners.after.event_stopped["check"] = function(_, body) table.insert(stops, body) end

--- Waits until the session has stopped again and has a frame.
local function stopped(count)
  local there = vim.wait(20000, function()
    local session = dap.session()
    return #stops >= count and session ~= nil and session.current_frame ~= nil
  end, 20)
  if not there then
    print("no stop " .. count)
    vim.cmd("cquit")
  end
  -- nvim-dap requests the frames after the event.
  vim.wait(300)
  return dap.session().current_frame, stops[count]
end

local function evaluate(expression)
  local result
  local session = dap.session()
  session:request("evaluate", { expression = expression, frameId = session.current_frame.id }, function(err, body)
    result = err and tostring(err) or body.result
  end)
  vim.wait(5000, function() return result ~= nil end, 20)
  return result
end

vim.cmd("edit examples/broken/wrong_result.rdna")
expect("file type", vim.bo.filetype, "rdna")
vim.api.nvim_win_set_cursor(0, { 17, 0 })
dap.set_breakpoint("v2[3].i32 < 0")
local configuration = vim.deepcopy(dap.configurations.rdna[1])
configuration.program = vim.fn.expand("%:p")
configuration.stopOnEntry = false
dap.run(configuration)

local frame, stop = stopped(1)
expect("stopped", stop.reason, "breakpoint")
expect("line", frame.line, 17)
expect("v2[3]", evaluate("v2[3].i32"), "-7")
dap.step_over()
expect("line", stopped(2).line, 18)
dap.step_back()
expect("line", stopped(3).line, 17)
dap.terminate()
vim.wait(500)
print(failed and "failed" or "passed")
vim.cmd(failed and "cquit" or "quitall!")
