;; Goals of ALFWorld's six task types, as its official files write them; pddl.py fills the braces.
;; place
        (:goal
            (and
                (exists (?r - receptacle)
                    (exists (?o - object)
                        (and
                            (inReceptacle ?o ?r)
                            (objectType ?o {object}Type)
                            (receptacleType ?r {target}Type)
                        )
                    )
                )
            )
        )
    )
;; change
        (:goal
            (and
                (exists (?r - receptacle)
                    (exists (?o - object)
                        (and
                            ({able} ?o)
                            (objectType ?o {object}Type)
                            (receptacleType ?r {target}Type)
                            ({state} ?o)
                            (inReceptacle ?o ?r)
                        )
                    )
                )
            )
        )
    )
;; two
        (:goal
            (and
                (exists (?r - receptacle)
                    (exists (?o1 - object)
                        (and
                            (objectType ?o1 {object}Type)
                            (receptacleType ?r {target}Type)
                            (inReceptacle ?o1 ?r)
                            (exists (?o2 - object)
                                (and
                                    (not (= ?o1 ?o2))
                                    (objectType ?o2 {object}Type)
                                    (receptacleType ?r {target}Type)
                                    (inReceptacle ?o2 ?r)
                                )
                            )
                        )
                    )
                )
            )
        )
    )
;; look
        (:goal
             (and
                 (exists (?ot - object
                          ?r - receptacle
                          ?a - agent
                          ?l - location)
                     (and
                         (objectType ?ot {target}Type)
                         (toggleable ?ot)
                         (isToggled ?ot)
                         (receptacleAtLocation ?r ?l)
                         (atLocation ?a ?l)
                         (inReceptacle ?ot ?r)
                     )
                 )
                 (exists (?o - object
                          ?a - agent)
                     (and
                         (objectType ?o {object}Type)
                         (holds ?a ?o)
                     )
                 )
             )
        )
    )
