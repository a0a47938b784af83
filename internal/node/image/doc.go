// Package image turns an image reference into read-only directories that a sandbox can lie on. A reference is "host" (the
// machine's own programs under a generated minimal /etc), one of a registry, an OCI layout, or an archive of docker or OCI.
// Layers are unpacked once and shared by all images that have them; what nothing uses any more is collected.
//
// What a sandbox does with the directories is package sandbox's. A fetch runs in a goroutine of the Store and ends when
// nobody waits for it.
package image
