// Package registry reads what registries say of images: which digest a name has, and who signed what has that digest.
//
// Layers are not its matter: package node/image and docker's daemon fetch them, by the digests that are found here. It starts no
// goroutines.
package registry
