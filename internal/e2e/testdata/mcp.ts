// A small MCP server on standard input and output with two tools.
import { createInterface } from "node:readline";

const tools = ["find", "drop"].map((name) => ({ name, description: name, inputSchema: { type: "object" } }));

function answer(method: string, params: { protocolVersion?: string; name?: string }): unknown {
	switch (method) {
		case "initialize":
			return {
				protocolVersion: params.protocolVersion,
				capabilities: { tools: {} },
				serverInfo: { name: "docs", version: "1.0.0" },
			};
		case "tools/list":
			return { tools };
		case "tools/call":
			return { content: [{ type: "text", text: `${params.name} was called` }] };
		case "ping":
			return {};
	}
	return undefined;
}

createInterface({ input: process.stdin }).on("line", (line) => {
	const { id, method, params = {} } = JSON.parse(line);
	if (id === undefined) return;
	const result = answer(method, params);
	const error = { code: -32601, message: `no method ${method}` };
	process.stdout.write(
		`${JSON.stringify({ jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) })}\n`,
	);
});
