import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { Type } from "typebox";

/** Gives the model a clock. */
export default function (pi: ExtensionAPI): void {
	pi.registerTool({
		name: "local-time",
		label: "Local time",
		description: "The date and time where the user is.",
		parameters: Type.Object({}),
		async execute() {
			return { content: [{ type: "text", text: new Date().toString() }], details: {} };
		},
	});
}
