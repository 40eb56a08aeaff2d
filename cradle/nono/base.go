package nono

// What every agent needs, whatever its folder says. nono expands $HOME itself, skips paths that do not exist, and ignores the
// macOS parts elsewhere, so one base serves all platforms.
var base = []struct{ path, reason string }{
	{"$HOME/.agents", "skills shared between agents"},
	{"$HOME/.local/share/mise", "tools that mise installed, pi among them"},
	{"$HOME/.config/mise", "mise's configuration"},
	{"$HOME/.local/state/mise", "mise's trust decisions"},
	{"$HOME/.config/gh", "the GitHub command line's login"},
	{"/System/iOSSupport/System/Library/ExtensionKit/Extensions", "macOS speech output"},
	{"/System/Library/AssetsV2/com_apple_MobileAsset_TTSAXResourceModelAssets", "macOS speech output"},
	{"/System/Library/AssetsV2/com_apple_MobileAsset_UAF_Siri_TextToSpeech", "macOS speech output"},
}

const (
	baseAllow = "$HOME/.pi/agent"
	baseRule  = `(allow user-preference-read (preference-domain "kCFPreferencesAnyApplication") (preference-domain "com.apple.speech.voice.prefs") (preference-domain "com.apple.speakselection") (preference-domain "com.apple.assistant.backedup") (preference-domain "com.apple.assistant.support") (preference-domain "com.apple.accessibility"))`
)
