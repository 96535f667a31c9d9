(define (problem kitchen) (:domain alfred)
 (:objects agent1 - agent
  loc_bar_0 loc_bar_1 loc_bar_2 loc_bar_3 loc_bar_9 - location
  Cabinet_bar_1 Cabinet_bar_2 Fridge_bar_1 Sink_bar_1_bar_SinkBasin CounterTop_bar_1 - receptacle
  Apple_bar_1 Apple_bar_2 Knife_bar_1 Box_bar_1 Pen_bar_1 - object
  CabinetType FridgeType SinkBasinType CounterTopType - rtype
  AppleType KnifeType BoxType PenType - otype)
 (:init
  (atLocation agent1 loc_bar_9)
  (receptacleAtLocation Cabinet_bar_1 loc_bar_0) (receptacleAtLocation Cabinet_bar_2 loc_bar_0)
  (receptacleAtLocation Fridge_bar_1 loc_bar_1) (receptacleAtLocation Sink_bar_1_bar_SinkBasin loc_bar_2)
  (receptacleAtLocation CounterTop_bar_1 loc_bar_3)
  (receptacleType Cabinet_bar_1 CabinetType) (receptacleType Cabinet_bar_2 CabinetType)
  (receptacleType Fridge_bar_1 FridgeType) (receptacleType Sink_bar_1_bar_SinkBasin SinkBasinType)
  (receptacleType CounterTop_bar_1 CounterTopType)
  (openable Cabinet_bar_1) (openable Fridge_bar_1)
  (objectType Apple_bar_1 AppleType) (objectType Apple_bar_2 AppleType) (objectType Knife_bar_1 KnifeType)
  (objectType Box_bar_1 BoxType) (objectType Pen_bar_1 PenType)
  (canContain CabinetType AppleType) (canContain CounterTopType AppleType) (canContain FridgeType AppleType)
  (canContain CounterTopType KnifeType) ; knives stay on the counter
  (pickupable Apple_bar_1) (pickupable Apple_bar_2) (pickupable Knife_bar_1) (pickupable Box_bar_1)
  (cleanable Apple_bar_1) (coolable Apple_bar_1) (coolable Apple_bar_2) (sliceable Apple_bar_1)
  (isReceptacleObject Box_bar_1) (inReceptacleObject Pen_bar_1 Box_bar_1)
  (inReceptacle Apple_bar_1 Cabinet_bar_2) (inReceptacle Apple_bar_2 Fridge_bar_1)
  (inReceptacle Knife_bar_1 CounterTop_bar_1) (inReceptacle Box_bar_1 CounterTop_bar_1)
  (objectAtLocation Apple_bar_1 loc_bar_0) (objectAtLocation Apple_bar_2 loc_bar_1)
  (objectAtLocation Knife_bar_1 loc_bar_3) (objectAtLocation Box_bar_1 loc_bar_3))
 (:goal (and (exists (?r - receptacle) (exists (?o - object) (and
  (coolable ?o) (objectType ?o AppleType) (receptacleType ?r CounterTopType) (isCool ?o) (inReceptacle ?o ?r)))))))
