// Package tenant decides what the jobs of a namespace may use: task drivers, network modes, images and node pools. It is pure and
// starts no goroutines: who asks brings the namespace and the job.
//
// Who may act in a namespace is package rights', how much may be used there package quota's.
package tenant
