// Package layout holds the map of the code, and its test guards it: it runs "go
// list" and fails on a package that is not on the map and on every import that
// the map does not allow.
//
// A package imports only packages that stand above it; what is indented is
// within the package before it, and may import its neighbours there. Two marks
// say more. A "pure" package decides: it has no client, no network, no files
// and no clock. A "controller" imports no other controller: they talk through
// the status of objects alone. The hub and the agent never import each other.
//
//	pkg/apis/fleet/v1alpha1   pure: the kinds of the API, their labels, conditions and reasons
//	pkg/fleetyaml             pure: reads fleet.yaml strictly, with file and line
//	charts                    the Helm charts that install Flotilla
//	docs/reference            the generated references that programs show
//	internal/digest           pure: the one hash
//	internal/cache            pure: remembers up to so many bytes
//	internal/names            pure: every name that is derived from another
//	internal/apireq           what an HTTP request asks of an API server, and whether it was done
//	internal/backoff          pure: how long to wait before what failed is tried again
//	internal/fault            pure: the three kinds of error, and where in a file one is
//	internal/hook             pure: which objects are Helm hooks, and when they run
//	internal/source           pure: a tree of files at one commit
//	  /chartref               pure: how a chart from elsewhere is named
//	  /cosign                 pure: verifies signatures by public keys
//	    /cosigntest           signs, for tests
//	  /git                    repositories and their clones; the door to go-git
//	    /gittest              serves repositories to tests
//	  /chart                  charts from repositories, registries and archives
//	    /charttest            serves charts to tests
//	  /dir                    a plain directory
//	internal/templating       pure: fills in what texts between ${ and } say of a cluster
//	internal/bundle           pure: a tree becomes drafts of bundles
//	internal/render           files, options and a cluster become ordered objects
//	  /helm                   charts; the door to Helm
//	  /kustomize              kustomizations; the door to Kustomize
//	  /manifest               pure: text becomes objects
//	  /raw                    plain YAML, overlays and patches
//	  /rendertest             input of renders, for tests
//	  /worker                 renders in child processes, with limits
//	internal/charts           brings charts from elsewhere into drafts, and pins them
//	internal/content          pure: what the hub sends, under names that its bytes give it
//	  /kube                   keeps it on the hub's API server
//	  /registry               keeps it in an OCI registry instead of the API server
//	    /registrytest         runs a registry for tests
//	internal/effect           pure: fields that are accepted and do not act yet
//	internal/target           pure: which clusters get a bundle, and with which options
//	internal/deployment       pure: what is to be written about a bundle's deployments
//	internal/status           pure: reports on deployments become the status of everything above them
//	internal/apply            objects become running objects; the door to server-side apply
//	internal/observe          are running objects ready, and as they were applied
//	internal/downstream       pure: copies of what downstreamResources name
//	internal/pipeline         the hub's stages on one page
//	internal/lint             what is wrong with a directory's bundles, without any cluster
//	internal/reconcile        how all controllers write status and meet errors
//	internal/hub              puts the hub together
//	  /access                 the credentials of a GitRepo
//	  /bundle/deploy          controller: a Bundle becomes deployments, one for each of its clusters
//	  /bundle/packing         the frame of controllers that make Bundles
//	  /bundle/sources         the files of Bundles
//	  /bundle/write           writes Bundles, their source and values
//	  /capabilities           what agents reported of their clusters
//	  /cluster/lease          controller: which clusters are silent
//	  /cluster/register       controller: what belongs to a Cluster on the hub
//	  /content/gc             controller: deletes content that nothing names
//	  /fair                   lets every namespace have its turn
//	  /follow                 watches single objects by their names
//	  /gauges                 counts the fleet for Prometheus
//	  /gitrepo/pack           controller: a commit becomes Bundles
//	  /gitrepo/poll           controller: asks Git servers for new commits
//	  /gitrepo/webhook        controller: hears from Git servers that something was pushed
//	  /groups                 which cluster groups there are
//	  /guard                  one hub acts on an API server
//	  /helmop                 controller: a HelmOp becomes a Bundle
//	  /hubtest                tests of the hub's parts against a real API server
//	  /lean                   a client whose writes are answered in few bytes
//	  /memory                 divides the memory limit between the hub and its renders
//	  /noeffect               controller: says of kinds that do nothing yet that they do nothing
//	  /registries             which registry the content of a bundle goes to
//	  /removal                tells a deletion that was meant from a loss
//	  /summary                controller: deployments become the status of everything else
//	  /tenancy                holds back where a Policy limits
//	internal/agent            puts the agent of one cluster together
//	  /accounts               acts as the service accounts that bundles name
//	  /beside                 controller: is an agent of Rancher Fleet at work here
//	  /deploy                 controller: brings each deployment to what the hub wants
//	  /drift                  controller: looks whether objects are still as applied
//	  /events                 events on the agent's own cluster
//	  /heartbeat              controller: tells the hub that the agent is alive
//	  /hub                    the agent's door to the hub
//	  /lease                  one agent acts on a cluster
//	  /render                 renders what needs the agent's cluster
//	  /report                 controller: tells the hub what the cluster is
//	  /state                  what the agent needs to go on without the hub
//	internal/lab              hub, spokes and a Git server as processes of one machine
//	  /gitserver              serves Git repositories
//	  /labtest                API servers of the lab for tests
//	internal/faultproxy       the enemies that a client meets, for tests
//	internal/memapi           an API server in memory, for tests
//	internal/soak             fleets under chosen faults
//	internal/bench            what a fleet costs
//	  /flotilla-bench         the program
//	  /meter                  requests, writes, processor and memory
//	  /report                 a table and a file of what was measured
//	  /rows                   what is measured, a file each
//	  /sim                    agents without clusters
//	  /stage                  what a measurement needs
//	internal/demo             shows the main job
//	internal/cli              the command line, a file for each command
//	  /overview               pure: what "flotilla status" shows
//	internal/docgen           writes the reference of the API
//	  /cli                    writes the reference of the command line
//	internal/layout           this map
//	cmd/internal/start        how the hub and the agent start
//	cmd/flotilla              the command line
//	cmd/flotilla-hub          the hub
//	cmd/flotilla-agent        the agent
//	examples                  what a user copies
//	e2e                       the whole system on real control planes
package layout
