package org.apache.spark.barograph.enforce

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class WayTest {
  private val noClock = "no clock"
  private val noGroups = "no groups"

  @Test def theWayThatWasAskedForIsTaken(): Unit = {
    assertEquals(Enforced("cgroup", ""), Way.chosen("cgroup", "", ""))
    assertEquals(Enforced("cooperative", ""), Way.chosen("cooperative", "", noGroups))
    assertEquals(Enforced("off", "enforce is off"), Way.chosen("off", "", ""))
  }

  @Test def autoNeedsNoRights(): Unit = {
    assertEquals(Enforced("cooperative", ""), Way.chosen("auto", "", ""))
    assertEquals(Enforced("cooperative", ""), Way.chosen("auto", "", noGroups))
    assertFalse(Way.triesGroups("auto", ""))
  }

  @Test def withoutAClockAutoTakesGroups(): Unit = {
    assertTrue(Way.triesGroups("auto", noClock))
    assertEquals(Enforced("cgroup", noClock), Way.chosen("auto", noClock, ""))
    assertEquals(Enforced("off", "no clock; no groups"), Way.chosen("auto", noClock, noGroups))
    assertEquals(Enforced("off", noClock), Way.chosen("cooperative", noClock, ""))
  }

  @Test def anErrorOfGroupsDoesNotLiftLimits(): Unit = {
    assertEquals(Enforced("cooperative", noGroups), Way.chosen("cgroup", "", noGroups))
    assertEquals(Enforced("off", "no clock; no groups"), Way.chosen("cgroup", noClock, noGroups))
  }

  @Test def anUnknownWayIsRefusedInOneSentence(): Unit = {
    assertEquals(None, Way.wrong("cooperative"))
    assertEquals(
      Some("spark.barograph.enforce must be one of auto, cgroup, cooperative, off, not 'cgroups'"),
      Way.wrong("cgroups"))
  }
}
