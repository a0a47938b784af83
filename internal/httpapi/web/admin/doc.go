// Package admin is the pages about what the cluster is made of and who may do what in it. They show servers, the doctor's
// findings, evaluations, deployments, services, volumes, variables, namespaces with their quotas, and access control. The page of
// which they are part asks the API for them, with the viewer's token.
//
// A request runs in the server's goroutine for it.
package admin
