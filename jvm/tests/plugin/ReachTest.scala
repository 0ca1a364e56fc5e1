package org.apache.spark.barograph.plugin

import java.net.{InetAddress, ServerSocket}

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class ReachTest {
  private val peers = Seq("1", "2", "3").map(id => Peer(id, s"host-$id", 1))

  @Test def twoFailuresInARowCountAndOneSuccessEndsIt(): Unit = {
    var cut = Set("2")
    val reach = new Reach(() => peers, p => !cut(p.executor))
    val seen = (1 to 3).map { _ => reach.look(); reach.unreachable }
    assertEquals(Seq(Nil, Nil, Seq("2")), seen)
    cut = Set.empty
    reach.look()
    assertEquals(Nil, reach.unreachable)
  }

  @Test def eachIsTriedInTurn(): Unit = {
    var tried = Seq.empty[String]
    val reach = new Reach(() => peers, p => { tried :+= p.executor; true })
    (1 to 4).foreach(_ => reach.look())
    assertEquals(Seq("1", "2", "3", "1"), tried)
  }

  @Test def anExecutorThatIsGoneIsForgotten(): Unit = {
    var now = peers
    val reach = new Reach(() => now, _ => false)
    (1 to 4).foreach(_ => reach.look())
    assertTrue(reach.unreachable.contains("1"))
    now = Nil
    reach.look()
    assertEquals(Nil, reach.unreachable)
  }

  @Test def theDriverIsAskedNowAndThenAndWhileOneIsNotReached(): Unit = {
    var asked = 0
    var cut = Set.empty[String]
    val reach = new Reach(() => { asked += 1; peers }, p => !cut(p.executor))
    (1 to 2 * Reach.AskedEvery).foreach(_ => reach.look())
    assertEquals(2, asked)
    cut = Set("1", "2", "3")
    reach.look() // asked for the third time, because it is time
    (1 to 4).foreach(_ => reach.look())
    assertEquals(7, asked)
  }

  @Test def anExecutorThatIsAloneLooksForOthersEachTime(): Unit = {
    var now = Seq.empty[Peer]
    var tried = Seq.empty[String]
    val reach = new Reach(() => now, p => { tried :+= p.executor; true })
    reach.look()
    now = peers
    reach.look()
    assertEquals(1, tried.size)
  }

  @Test def aHostThatAnswersIsReachedAlsoIfItRefuses(): Unit = {
    val server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress)
    val peer = Peer("1", "127.0.0.1", server.getLocalPort)
    assertTrue(Reach.connects(peer))
    server.close()
    assertTrue(Reach.connects(peer))
  }
}
