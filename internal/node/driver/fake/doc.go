// Package fake is a driver whose tasks exist only in memory, so that everything above drivers can be tested without
// processes or root. It is scriptable like Nomad's mock_driver, with executions in a tiny shell language and files in a
// map.
//
// It is for tests, and for jobs written for mock_driver. A task's goroutines end with its script or its kill.
package fake
