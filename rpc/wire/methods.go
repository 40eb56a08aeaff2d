package wire

// Method ties a method's name to the types of its parameters and its result. A nil Result marks a notification.
type Method struct {
	Name           string
	Params, Result any
}

// HelperMethods is everything the host may call on the helper.
var HelperMethods = []Method{
	{Initialize, InitializeParams{}, InitializeResult{}},
	{SessionStart, SessionStartParams{}, SessionStartResult{}},
	{SessionShutdown, SessionShutdownParams{}, Empty{}},
	{RunPrepare, RunPrepareParams{}, RunPrepareResult{}},
	{RunSettled, RunSettledParams{}, Empty{}},
	{InputSeen, InputSeenParams{}, nil},
	{MailStaged, MailStagedParams{}, nil},
	{MailInbound, Inbound{}, Empty{}},
	{CommandRun, CommandRunParams{}, Empty{}},
	{CommandComplete, CommandCompleteParams{}, CommandCompleteResult{}},
	{ToolCall, ToolCallParams{}, ToolCallResult{}},
	{Cancel, CancelParams{}, nil},
}

// HostMethods is everything the helper may call on the host.
var HostMethods = []Method{
	{HostNotify, NotifyParams{}, nil},
	{HostStatus, StatusParams{}, nil},
	{HostClaims, Claims{}, nil},
	{HostTool, ToolUpdate{}, nil},
	{HostSend, SendParams{}, Empty{}},
	{HostPrompt, PromptParams{}, Empty{}},
	{HostExit, Empty{}, Empty{}},
	{HostEmit, EmitParams{}, EmitResult{}},
	{HostEntries, EntriesParams{}, EntriesResult{}},
	{HostModels, ModelsParams{}, ModelsResult{}},
	{HostTools, Empty{}, ToolsResult{}},
	{HostDialog, DialogParams{}, DialogResult{}},
	{HostTrustLook, TrustLookParams{}, TrustLookResult{}},
	{HostTrustSave, TrustSaveParams{}, Empty{}},
	{Cancel, CancelParams{}, nil},
}
