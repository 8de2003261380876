package v1alpha1

// StatusConditions is where a Bundle keeps conditions.
func (b *Bundle) StatusConditions() *[]Condition { return &b.Status.Conditions }

// StatusConditions is where a BundleDeployment keeps conditions.
func (d *BundleDeployment) StatusConditions() *[]Condition { return &d.Status.Conditions }

// StatusConditions is where a Cluster keeps conditions.
func (c *Cluster) StatusConditions() *[]Condition { return &c.Status.Conditions }

// StatusConditions is where a ClusterGroup keeps conditions.
func (g *ClusterGroup) StatusConditions() *[]Condition { return &g.Status.Conditions }

// StatusConditions is where a GitRepo keeps conditions.
func (r *GitRepo) StatusConditions() *[]Condition { return &r.Status.Conditions }

// StatusConditions is where a HelmOp keeps conditions.
func (o *HelmOp) StatusConditions() *[]Condition { return &o.Status.Conditions }

// StatusConditions is where a Schedule keeps conditions.
func (s *Schedule) StatusConditions() *[]Condition { return &s.Status.Conditions }

// StatusConditions is where an ImageScan keeps conditions.
func (s *ImageScan) StatusConditions() *[]Condition { return &s.Status.Conditions }

// StatusConditions is where a ClusterRegistration keeps conditions.
func (r *ClusterRegistration) StatusConditions() *[]Condition { return &r.Status.Conditions }

// StatusConditions is where a ClusterRegistrationToken keeps conditions.
func (t *ClusterRegistrationToken) StatusConditions() *[]Condition { return &t.Status.Conditions }
