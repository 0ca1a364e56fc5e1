package org.apache.spark.barograph.testing

import java.nio.file.Path

import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.barograph.enforce.{ExecutorGroup, GroupWrites, OwnGroup, Quota, Written}
import org.apache.spark.barograph.orders.{InstanceKey, Share}

/**
 * The writes for two instances with two pairs of limits, one after the other, and for their end, as JSON on standard
 * output, for a test on a kernel with version 2. The executor's own group is the first argument; the threads are 1 and
 * 2.
 */
object GroupLists {
  private val instances = Seq(InstanceKey("wc", "split", 0), InstanceKey("wc", "count", 0))

  def main(args: Array[String]): Unit = {
    val own = OwnGroup(2, Path.of(args(0)), Path.of(args(0)))
    val of = ExecutorGroup(own, 1L, saves = true)
    val fence = Some(Quota(60000L, 100000L))
    val states = Seq((10.0, 20.0), (25.0, 5.0)).map { case (first, second) =>
      val shares = Seq(first, second).map(pct => Share((pct * 1000).toLong, 0L))
      GroupWrites.wanted(2, fence, instances.zip(Seq(1, 2).zip(shares)).toMap)
    } :+ Written.nothing
    val turns = (Written.nothing +: states).zip(states).map { case (before, after) =>
      java.util.Map.of(
        "writes", GroupWrites.writes(of, before, after).map(w => Array(w.path.toString, w.content)).toArray,
        "groups", instances.map(of.of(_).toString).toArray,
        "gone", (GroupWrites.gone(of, before, after) ++ (if (after == Written.nothing) Seq(of.all) else Nil))
          .map(_.toString).toArray)
    }
    println(new ObjectMapper().writeValueAsString(turns.toArray))
  }
}
