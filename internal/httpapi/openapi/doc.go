// Package openapi describes the operations of faces as an OpenAPI document.
//
// What the document says is the faces'. It starts no goroutines.
package openapi
