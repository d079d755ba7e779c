package dev.berth.plugin;

import berth.plugin.v1.Common;
import berth.plugin.v1.Group;
import berth.plugin.v1.PlacementOuterClass;
import berth.plugin.v1.Scheduling;
import com.google.protobuf.Message;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A unary call about a pod or its group, by whichever way it comes. */
record Method<Q extends Message, R extends Message>(
    String name, Q empty, Function<Q, Common.Call> head, BiFunction<Asked, Q, R> function) {
  /** Those of SchedulingService, by name. */
  static final Map<String, Method<?, ?>> ALL =
      Stream.of(
              new Method<>(
                  "PreEnqueue",
                  Scheduling.PreEnqueueRequest.getDefaultInstance(),
                  Scheduling.PreEnqueueRequest::getCall,
                  Finding::preEnqueue),
              new Method<>(
                  "Filter",
                  Scheduling.FilterRequest.getDefaultInstance(),
                  Scheduling.FilterRequest::getCall,
                  Finding::filter),
              new Method<>(
                  "Score",
                  Scheduling.ScoreRequest.getDefaultInstance(),
                  Scheduling.ScoreRequest::getCall,
                  Finding::score),
              new Method<>(
                  "FilterScore",
                  Scheduling.FilterScoreRequest.getDefaultInstance(),
                  Scheduling.FilterScoreRequest::getCall,
                  Finding::filterScore),
              new Method<>(
                  "FilterOverlays",
                  Scheduling.FilterOverlaysRequest.getDefaultInstance(),
                  Scheduling.FilterOverlaysRequest::getCall,
                  Overlays::filterOverlays),
              new Method<>(
                  "PostFilter",
                  Scheduling.PostFilterRequest.getDefaultInstance(),
                  Scheduling.PostFilterRequest::getCall,
                  Finding::postFilter),
              new Method<>(
                  "Reserve",
                  Scheduling.ReserveRequest.getDefaultInstance(),
                  Scheduling.ReserveRequest::getCall,
                  Binding::reserve),
              new Method<>(
                  "Unreserve",
                  Scheduling.UnreserveRequest.getDefaultInstance(),
                  Scheduling.UnreserveRequest::getCall,
                  Binding::unreserve),
              new Method<>(
                  "Permit",
                  Scheduling.PermitRequest.getDefaultInstance(),
                  Scheduling.PermitRequest::getCall,
                  Binding::permit),
              new Method<>(
                  "PreBind",
                  Scheduling.PreBindRequest.getDefaultInstance(),
                  Scheduling.PreBindRequest::getCall,
                  Binding::preBind),
              new Method<>(
                  "Bind",
                  Scheduling.BindRequest.getDefaultInstance(),
                  Scheduling.BindRequest::getCall,
                  Binding::bind),
              new Method<>(
                  "PostBind",
                  Scheduling.PostBindRequest.getDefaultInstance(),
                  Scheduling.PostBindRequest::getCall,
                  Binding::postBind),
              new Method<>(
                  "CycleDone",
                  Scheduling.CycleDoneRequest.getDefaultInstance(),
                  Scheduling.CycleDoneRequest::getCall,
                  Binding::cycleDone))
          .collect(Collectors.toMap(Method::name, each -> each));

  /** Those of PlacementService, by name. */
  static final Map<String, Method<?, ?>> PLACEMENT =
      Stream.of(
              new Method<>(
                  "GeneratePlacements",
                  PlacementOuterClass.GeneratePlacementsRequest.getDefaultInstance(),
                  PlacementOuterClass.GeneratePlacementsRequest::getCall,
                  Placing::generate),
              new Method<>(
                  "ScorePlacements",
                  PlacementOuterClass.ScorePlacementsRequest.getDefaultInstance(),
                  PlacementOuterClass.ScorePlacementsRequest::getCall,
                  Placing::score))
          .collect(Collectors.toMap(Method::name, each -> each));

  /** Those of GroupService, by name. */
  static final Map<String, Method<?, ?>> GROUP =
      Stream.of(
              new Method<>(
                  "PlacementFeasible",
                  Group.PlacementFeasibleRequest.getDefaultInstance(),
                  Group.PlacementFeasibleRequest::getCall,
                  Grouping::feasible),
              new Method<>(
                  "PodGroupPostFilter",
                  Group.PodGroupPostFilterRequest.getDefaultInstance(),
                  Group.PodGroupPostFilterRequest::getCall,
                  Grouping::postFilter))
          .collect(Collectors.toMap(Method::name, each -> each));

  /** A request of this call's, which the transport has taken for one. */
  @SuppressWarnings("unchecked")
  Q cast(Message request) {
    return (Q) empty.getClass().cast(request);
  }
}
