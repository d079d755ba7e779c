"""Field numbers of the types that clients send as protobuf: kubectl, a scheduler, an autoscaler.

The rest of a type, what a field holds, is in the published schemas (schemas.py). A type or number that is not
here is not read.
Source: the wire format of Kubernetes' types, as kubectl 1.32 and 1.37 and kube-scheduler 1.36 write it;
staging/src/k8s.io/api/core/v1/generated.proto (v1.36).
"""

from typing import Final

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_CORE: Final = "io.k8s.api.core.v1."
_RBAC: Final = "io.k8s.api.rbac.v1."
_REVIEW: Final = "io.k8s.api.authorization.v1."
_EVENTS: Final = "io.k8s.api.events.v1."


def _numbered(names: str) -> dict[int, str]:
    """Number names from 1; a dash skips a number."""
    return {number: name for number, name in enumerate(names.split(), 1) if name != "-"}


INLINE: Final = ""
"""In place of a name: as JSON, the fields of the message stand beside the others."""

_OBJECT: Final = _numbered("metadata spec status")

_AFFINITY: Final = (
    "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"
)

FIELDS: Final[dict[str, dict[int, str]]] = {
    _META + "ObjectMeta": {
        **_numbered("name generateName namespace selfLink uid resourceVersion generation creationTimestamp"),
        9: "deletionTimestamp",
        10: "deletionGracePeriodSeconds",
        11: "labels",
        12: "annotations",
        13: "ownerReferences",
        14: "finalizers",
        17: "managedFields",
    },
    _META + "OwnerReference": _numbered("kind - name uid apiVersion controller blockOwnerDeletion"),
    _META + "ManagedFieldsEntry": _numbered(
        "manager operation apiVersion time - fieldsType fieldsV1 subresource"
    ),
    _META + "LabelSelector": _numbered("matchLabels matchExpressions"),
    _META + "LabelSelectorRequirement": _numbered("key operator values"),
    _META + "DeleteOptions": _numbered(
        "gracePeriodSeconds preconditions orphanDependents propagationPolicy dryRun"
    ),
    _META + "Preconditions": _numbered("uid resourceVersion"),
    _CORE + "Namespace": _OBJECT,
    _CORE + "ConfigMap": _numbered("metadata data binaryData immutable"),
    _CORE + "Secret": _numbered("metadata data type stringData immutable"),
    _CORE + "ServiceAccount": _numbered("metadata secrets imagePullSecrets automountServiceAccountToken"),
    _CORE + "ResourceQuota": _OBJECT,
    _CORE + "ResourceQuotaSpec": _numbered("hard scopes"),
    _CORE + "Service": _OBJECT,
    _CORE + "ServiceSpec": _numbered(
        "ports selector clusterIP type externalIPs - sessionAffinity loadBalancerIP loadBalancerSourceRanges "
        "externalName externalTrafficPolicy"
    ),
    _CORE + "ServicePort": _numbered("name protocol port targetPort nodePort appProtocol"),
    _CORE + "Pod": _OBJECT,
    _CORE + "PodTemplateSpec": _numbered("metadata spec"),
    _CORE + "PodSpec": {
        **_numbered(
            "volumes containers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy "
            "nodeSelector serviceAccountName serviceAccount nodeName hostNetwork hostPID hostIPC - - "
            "hostname subdomain affinity schedulerName initContainers - tolerations - priorityClassName "
            "priority"
        ),
        31: "preemptionPolicy",
        32: "overhead",
        33: "topologySpreadConstraints",
        37: "hostUsers",
        38: "schedulingGates",
        39: "resourceClaims",
        40: "resources",
        43: "schedulingGroup",
    },
    _CORE + "PodStatus": {
        **_numbered("phase conditions message reason - - startTime containerStatuses"),
        10: "initContainerStatuses",
        11: "nominatedNodeName",
        15: "resourceClaimStatuses",
        18: "extendedResourceClaimStatus",
        19: "allocatedResources",
        20: "resources",
    },
    _CORE + "PodCondition": _numbered("type status lastProbeTime lastTransitionTime reason message"),
    _CORE + "ContainerStatus": {1: "name", 10: "allocatedResources", 11: "resources"},
    _CORE + "PodResourceClaimStatus": _numbered("name resourceClaimName"),
    _CORE + "PodExtendedResourceClaimStatus": _numbered("requestMappings resourceClaimName"),
    _CORE + "ContainerExtendedResourceRequest": _numbered("containerName resourceName requestName"),
    _CORE + "Affinity": _numbered("nodeAffinity podAffinity podAntiAffinity"),
    _CORE + "NodeAffinity": _numbered(_AFFINITY),
    _CORE + "NodeSelector": _numbered("nodeSelectorTerms"),
    _CORE + "NodeSelectorTerm": _numbered("matchExpressions matchFields"),
    _CORE + "NodeSelectorRequirement": _numbered("key operator values"),
    _CORE + "PreferredSchedulingTerm": _numbered("weight preference"),
    _CORE + "PodAffinity": _numbered(_AFFINITY),
    _CORE + "PodAntiAffinity": _numbered(_AFFINITY),
    _CORE + "PodAffinityTerm": _numbered(
        "labelSelector namespaces topologyKey namespaceSelector matchLabelKeys mismatchLabelKeys"
    ),
    _CORE + "WeightedPodAffinityTerm": _numbered("weight podAffinityTerm"),
    _CORE + "TopologySpreadConstraint": _numbered(
        "maxSkew topologyKey whenUnsatisfiable labelSelector minDomains nodeAffinityPolicy nodeTaintsPolicy "
        "matchLabelKeys"
    ),
    _CORE + "PodSchedulingGate": _numbered("name"),
    _CORE + "PodSchedulingGroup": _numbered("podGroupName"),
    _CORE + "PodResourceClaim": _numbered("name - resourceClaimName resourceClaimTemplateName"),
    _CORE + "Volume": {1: "name", 2: INLINE},
    _CORE + "VolumeSource": {
        2: "emptyDir",
        3: "gcePersistentDisk",
        4: "awsElasticBlockStore",
        8: "iscsi",
        10: "persistentVolumeClaim",
        11: "rbd",
        13: "cinder",
        18: "azureFile",
        20: "vsphereVolume",
        22: "azureDisk",
        24: "portworxVolume",
        28: "csi",
        29: "ephemeral",
    },
    _CORE + "EmptyDirVolumeSource": _numbered("medium sizeLimit"),
    _CORE + "GCEPersistentDiskVolumeSource": _numbered("pdName fsType partition readOnly"),
    _CORE + "AWSElasticBlockStoreVolumeSource": _numbered("volumeID fsType partition readOnly"),
    _CORE + "ISCSIVolumeSource": _numbered("targetPortal iqn lun - - readOnly"),
    _CORE + "RBDVolumeSource": _numbered("monitors image - pool - - - readOnly"),
    _CORE + "PersistentVolumeClaimVolumeSource": _numbered("claimName readOnly"),
    _CORE + "CSIVolumeSource": _numbered("driver readOnly"),
    _CORE + "EphemeralVolumeSource": _numbered("volumeClaimTemplate"),
    _CORE + "Node": _OBJECT,
    _CORE + "NodeSpec": _numbered("- - providerID unschedulable taints"),
    _CORE + "Taint": _numbered("key value effect timeAdded"),
    _CORE + "NodeStatus": {
        **_numbered("capacity allocatable - conditions"),
        8: "images",
        14: "declaredFeatures",
    },
    _CORE + "NodeCondition": _numbered("type status lastHeartbeatTime lastTransitionTime reason message"),
    _CORE + "ContainerImage": _numbered("names sizeBytes"),
    _CORE + "Container": {
        **_numbered(
            "name image command args workingDir ports env resources - - - - terminationMessagePath "
            "imagePullPolicy - stdin stdinOnce tty - terminationMessagePolicy"
        ),
        24: "restartPolicy",
        25: "restartPolicyRules",
    },
    _CORE + "ContainerRestartRule": _numbered("action"),
    _CORE + "ContainerPort": _numbered("name hostPort containerPort protocol hostIP"),
    _CORE + "EnvVar": _numbered("name value"),
    _CORE + "ResourceRequirements": _numbered("limits requests claims"),
    _CORE + "ResourceClaim": _numbered("name request"),
    _CORE + "Toleration": _numbered("key operator value effect tolerationSeconds"),
    _CORE + "Binding": _numbered("metadata target"),
    _CORE + "ObjectReference": _numbered("kind namespace name uid apiVersion resourceVersion fieldPath"),
    _CORE + "Event": _numbered(
        "metadata involvedObject reason message source firstTimestamp lastTimestamp count type eventTime "
        "series action related reportingComponent reportingInstance"
    ),
    _CORE + "EventSource": _numbered("component host"),
    _CORE + "EventSeries": _numbered("count lastObservedTime"),
    _EVENTS + "Event": _numbered(
        "metadata eventTime series reportingController reportingInstance action reason regarding related "
        "note type deprecatedSource deprecatedFirstTimestamp deprecatedLastTimestamp deprecatedCount"
    ),
    _EVENTS + "EventSeries": _numbered("count lastObservedTime"),
    "io.k8s.api.coordination.v1.Lease": _OBJECT,
    "io.k8s.api.coordination.v1.LeaseSpec": _numbered(
        "holderIdentity leaseDurationSeconds acquireTime renewTime leaseTransitions strategy preferredHolder"
    ),
    "io.k8s.api.apps.v1.Deployment": _OBJECT,
    "io.k8s.api.apps.v1.DeploymentSpec": _numbered(
        "replicas selector template strategy minReadySeconds revisionHistoryLimit paused - "
        "progressDeadlineSeconds"
    ),
    "io.k8s.api.apps.v1.DeploymentStrategy": _numbered("type"),
    "io.k8s.api.batch.v1.Job": _OBJECT,
    "io.k8s.api.batch.v1.JobSpec": _numbered(
        "parallelism completions activeDeadlineSeconds selector manualSelector template backoffLimit "
        "ttlSecondsAfterFinished completionMode suspend"
    ),
    "io.k8s.api.policy.v1.PodDisruptionBudget": _OBJECT,
    "io.k8s.api.policy.v1.PodDisruptionBudgetSpec": _numbered(
        "minAvailable selector maxUnavailable unhealthyPodEvictionPolicy"
    ),
    "io.k8s.api.policy.v1.Eviction": _numbered("metadata deleteOptions"),
    "io.k8s.api.scheduling.v1.PriorityClass": _numbered(
        "metadata value globalDefault description preemptionPolicy"
    ),
    _RBAC + "Role": _numbered("metadata rules"),
    _RBAC + "ClusterRole": _numbered("metadata rules"),
    _RBAC + "PolicyRule": _numbered("verbs apiGroups resources resourceNames nonResourceURLs"),
    _RBAC + "RoleBinding": _numbered("metadata subjects roleRef"),
    _RBAC + "ClusterRoleBinding": _numbered("metadata subjects roleRef"),
    _RBAC + "Subject": _numbered("kind apiGroup name namespace"),
    _RBAC + "RoleRef": _numbered("apiGroup kind name"),
    _REVIEW + "SubjectAccessReview": _OBJECT,
    _REVIEW + "SubjectAccessReviewSpec": _numbered(
        "resourceAttributes nonResourceAttributes user groups extra uid"
    ),
    _REVIEW + "SelfSubjectAccessReview": _OBJECT,
    _REVIEW + "SelfSubjectAccessReviewSpec": _numbered("resourceAttributes nonResourceAttributes"),
    _REVIEW + "ResourceAttributes": _numbered("namespace verb group version resource subresource name"),
    _REVIEW + "NonResourceAttributes": _numbered("path verb"),
    _REVIEW + "SelfSubjectRulesReview": _OBJECT,
    _REVIEW + "SelfSubjectRulesReviewSpec": _numbered("namespace"),
    "io.k8s.api.authentication.v1.TokenReview": _OBJECT,
    "io.k8s.api.authentication.v1.TokenReviewSpec": _numbered("token audiences"),
    "io.k8s.api.authentication.v1.SelfSubjectReview": _numbered("metadata status"),
    "io.k8s.api.authentication.v1.TokenRequest": _OBJECT,
    "io.k8s.api.authentication.v1.TokenRequestSpec": _numbered("audiences - - expirationSeconds"),
}
