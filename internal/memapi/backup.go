package memapi

import "k8s.io/apimachinery/pkg/runtime/schema"

// Backup keeps the objects of a resource as they are, and returns what brings
// back those that are still there, as a restored backup does.
func (s *Server) Backup(resource schema.GroupResource) (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := map[key]map[string]any{}
	for at, o := range s.objects[resource] {
		kept[at] = deepCopy(o.content)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for at, content := range kept {
			if s.objects[resource][at] != nil {
				s.store(s.kinds[resource], at, content, Change{Agent: "backup"})
			}
		}
	}
}
