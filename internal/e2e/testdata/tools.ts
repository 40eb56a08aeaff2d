// Tools of an extension, for tests of which ones a delegate gets.
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI): void {
	for (const name of ["notes_add", "notes_find", "gadget"]) {
		pi.registerTool({
			name,
			label: name,
			description: `The tool ${name}`,
			parameters: { type: "object", properties: {} },
			execute: async () => ({ content: [{ type: "text", text: `${name} was called` }], details: {} }),
		});
	}
}
