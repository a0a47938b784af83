// Package images gets the images of containers: from their registry, with the account of the task or the node, or out of
// an archive that a task brought. It counts who uses them, and removes those that it got itself.
//
// What runs of an image is package docker's. A Cache owns a goroutine for each pull, which ends when nobody waits for
// it, and a timer for each image without users.
package images
