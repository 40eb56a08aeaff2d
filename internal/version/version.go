// Package version holds the one version number of both binaries, the npm package and the wire.
package version

// Version is the release. layers_test.go holds package.json to the same text.
const Version = "0.1.0"
