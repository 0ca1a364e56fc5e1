package org.apache.spark.barograph.enforce

import java.nio.file.{Files, Path}

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

class OwnGroupTest {
  private val v1 = "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct"
  private val v2 = "31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"
  private def group(version: Int, path: String, root: String) = Some(OwnGroup(version, Path.of(path), Path.of(root)))

  @Test def itsOwnGroupIsFound(): Unit = {
    val own = "4:memory:/m\n3:cpu,cpuacct:/user/app\n0::/slice/app\n"
    val found = OwnGroup.in(s"$v2\n$v1\n", own)
    assertEquals(group(1, "/sys/fs/cgroup/cpu,cpuacct/user/app", "/sys/fs/cgroup/cpu,cpuacct"), found)
    assertEquals(group(2, "/sys/fs/cgroup/unified/slice/app", "/sys/fs/cgroup/unified"), OwnGroup.in(v2, own))
    assertEquals(None, OwnGroup.in("22 1 8:1 / / rw - ext4 /dev/sda1 rw", own))
  }

  @Test def aContainerSeesItsGroupAsTheMount(): Unit = {
    val mount = "30 25 0:26 /docker/ab /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu"
    assertEquals(group(1, "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu"), OwnGroup.in(mount, "3:cpu:/docker/ab"))
    assertEquals(group(1, "/sys/fs/cgroup/cpu/x", "/sys/fs/cgroup/cpu"), OwnGroup.in(mount, "3:cpu:/docker/ab/x"))
  }

  @Test def aSpaceInAPathIsRead(): Unit = assertEquals(
    group(2, "/a b/c", "/a b"), OwnGroup.in("31 25 0:27 / /a\\040b rw - cgroup2 cgroup2 rw", "0::/c"))

  @Test def theLeastQuotaAroundItCounts(@TempDir folder: Path): Unit = {
    val (outer, inner) = (folder.resolve("pod"), folder.resolve("pod/app"))
    Files.createDirectories(inner)
    for ((group, text) <- Seq(folder -> "max 100000", outer -> "50000 100000", inner -> "20000 20000")) {
      Files.writeString(group.resolve("cpu.max"), text + "\n")
    }
    assertEquals(Some(Quota(50000L, 100000L)), OwnGroup(2, inner, folder).fence)
    assertEquals(Some(outer), OwnGroup(2, inner, folder).fenced.map(_._1))
    Files.writeString(inner.resolve("cpu.max"), "10000 20000\n")
    assertEquals(Some(inner), OwnGroup(2, inner, folder).fenced.map(_._1), "its own, of equal ones")
    assertEquals(None, OwnGroup(2, folder, folder).fence)
  }

  @Test def executorsOfOneGroupTakeEqualPartsOfItsQuota(): Unit = {
    assertEquals(Seq(500L, 500L, 250L, 166L), Seq(0, 1, 2, 3).map(Capacity("/node 7", 500L, 2000L).part))
    assertEquals(0L, Capacity("/ 1", 0L, 2000L).part(3))
  }

  /** In each its own group is at the same path. */
  @Test def groupsOfTwoContainersAreToldApart(@TempDir folder: Path): Unit = {
    val (seen, aside) = (folder.resolve("cgroup"), folder.resolve("aside"))
    Files.createDirectory(seen)
    val first = Capacity.nameOf(seen)
    assertEquals(first, Capacity.nameOf(seen))
    Files.move(seen, aside)
    Files.createDirectory(seen)
    assertNotEquals(first, Capacity.nameOf(seen))
  }

  @Test def quotasOfVersion1AreRead(@TempDir folder: Path): Unit = {
    Files.writeString(folder.resolve("cpu.cfs_quota_us"), "-1\n")
    Files.writeString(folder.resolve("cpu.cfs_period_us"), "100000\n")
    assertEquals(None, OwnGroup(1, folder, folder).fence)
    Files.writeString(folder.resolve("cpu.cfs_quota_us"), "150000\n")
    assertEquals(Some(Quota(150000L, 100000L)), OwnGroup(1, folder, folder).fence)
  }

  @Test def theProcessorsOfAMaskAreCounted(): Unit = {
    assertEquals(Some(2), Capacity.allowedIn("Name:\tjava\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n"))
    assertEquals(Some(40), Capacity.allowedIn("Cpus_allowed:\tff,ffffffff\n"))
    assertEquals(None, Capacity.allowedIn("Name:\tjava\n"))
  }

  @Test def theCapacityOfThisProcessIsKnown(): Unit = assertTrue(Capacity.now().allowedMilliCores >= 1000L)
}
