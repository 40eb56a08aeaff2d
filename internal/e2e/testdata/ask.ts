// A command that opens a dialog, for tests.
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI) {
	pi.registerCommand("ask", {
		description: "Ask",
		handler: async (_args, ctx) => {
			const answer = await ctx.ui.select("Which one?", ["first", "second"]);
			ctx.ui.notify(`picked ${answer}`, "info");
		},
	});
}
