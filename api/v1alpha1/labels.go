package v1alpha1

// LabelUsableBy on a Secret or ConfigMap says which RelayPool of its namespace may
// name it, if the operator's settings require the label. The value is the name of the
// RelayPool, or UsableByAny.
const LabelUsableBy = Group + "/usable-by"

// UsableByAny is the value of LabelUsableBy that lets every RelayPool of the
// namespace name the object.
const UsableByAny = "any"
