package v1alpha1

// LabelUsableBy is a label of Secrets and ConfigMaps. Its value is the name of the
// RelayPool in the same namespace that may use the object, or UsableByAny. The label
// counts only if the operator's settings require it.
const LabelUsableBy = Group + "/usable-by"

// UsableByAny is the value of LabelUsableBy that lets every RelayPool of the
// namespace use the object.
const UsableByAny = "any"
