// The extension: the language server, the debug adapter, and the commands of code lenses.

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { adapter, debugged, dimensions, documents, server } = require("./server");

let client;
let results;
/** The launches that the user has entered, by file and kernel. */
const launches = new Map();

function path() {
  return vscode.workspace.getConfiguration("wavesim").get("path", "wavesim");
}

function settings() {
  const { arch, wave, liveRegisters, lastValues, maxInstructions } = vscode.workspace.getConfiguration("wavesim");
  return { arch, wave, liveRegisters, lastValues, maxInstructions };
}

/** Asks for the launch of a kernel of an assembly file; text kernels have one. Returns undefined if the user cancels. */
async function launch(target) {
  if (!target.kernel) return target;
  const key = `${target.uri} ${target.kernel}`;
  const before = launches.get(key) ?? { grid: "1", block: "32", args: "" };
  const ask = (prompt, value, validateInput) => vscode.window.showInputBox({ prompt, value, validateInput });
  const numbers = (text) => (dimensions(text) ? null : "up to three positive numbers, separated by commas");
  const grid = await ask("Workgroups", before.grid, numbers);
  const block = grid && (await ask("Work-items in a workgroup", before.block, numbers));
  const args = block && (await ask("Arguments, separated by semicolons: x: f32[4]=arange(4); out_y: f32[4]; 2.5", before.args));
  if (args === undefined || !block) return undefined;
  launches.set(key, { grid, block, args });
  const three = (text) => [...dimensions(text), 1, 1].slice(0, 3);
  const list = args.split(";").map((arg) => arg.trim()).filter(Boolean);
  return { ...target, grid: three(grid), block: three(block), args: list };
}

/** Runs a command of the server, and shows its results. */
async function executeCommand(command, [target], next) {
  const complete = await launch(target);
  if (!complete) return undefined;
  const answer = await next(command, [complete]);
  results.appendLine(`${command}: ${answer?.summary ?? ""}`);
  for (const output of answer?.outputs ?? []) results.appendLine(`  ${output.name}: ${output.type}`);
  for (const finding of answer?.findings ?? []) results.appendLine(`  line ${finding.line}: ${finding.message}`);
  return answer;
}

exports.activate = async (context) => {
  results = vscode.window.createOutputChannel("wavesim results");
  context.subscriptions.push(results);
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory("wavesim", {
      createDebugAdapterDescriptor() {
        const { command, args } = adapter(path());
        return new vscode.DebugAdapterExecutable(command, args);
      },
    }),
    vscode.commands.registerCommand("wavesim.debug", async (target) => {
      const uri = target?.uri ? vscode.Uri.parse(target.uri) : vscode.window.activeTextEditor?.document.uri;
      if (!uri) return;
      const complete = await launch(target ?? {});
      if (complete) await vscode.debug.startDebugging(vscode.workspace.getWorkspaceFolder(uri), debugged(uri.fsPath, complete));
    }),
  );
  client = new LanguageClient("wavesim", "wavesim", server(path()), {
    documentSelector: documents,
    initializationOptions: settings(),
    synchronize: { configurationSection: "wavesim" },
    middleware: { executeCommand },
  });
  context.subscriptions.push(client);
  await client.start();
};

exports.deactivate = () => client?.stop();
