// Package users finds out whom tasks in a container act as: names and numbers of users and groups, by the files of its image.
//
// It starts no goroutines.
package users
