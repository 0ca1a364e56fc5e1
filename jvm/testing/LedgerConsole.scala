package org.apache.spark.barograph.testing

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import org.apache.spark.barograph.orders.{ExecutorSeats, Ledger, TopologyOrders}
import org.apache.spark.barograph.planner.{OperatorSketch, TopologySketch}

/** The ledger without Spark, for tests that call it in any order: a call is a line of JSON, and so is its answer. */
object LedgerConsole {
  private val json = new ObjectMapper()
  private val Parallelism = Seq("read" -> 1, "count" -> 2)

  def main(args: Array[String]): Unit = scala.io.Source.stdin.getLines().foreach { line =>
    System.out.println(json.writeValueAsString(answer(json.readTree(line))))
    System.out.flush()
  }

  private def answer(call: JsonNode): AnyRef = {
    def text(name: String) = call.get(name).asText
    def number(name: String) = call.get(name).asLong
    def texts(name: String) = call.get(name).elements.asScala.map(_.asText).toSet
    def numbers(name: String) = call.get(name).properties.asScala.map(e => e.getKey -> e.getValue.asLong).toMap
    text("do") match {
      case "reset" => Ledger.reset(); null
      case "begin" => told(Ledger.begin(text("topology"), text("run"), number("epoch")))
      case "seat" =>
        val live = numbers("live").toSeq.sortBy(_._1).map { case (id, seats) =>
          ExecutorSeats(id, s"host-$id", seats.toInt, 0L, seats.toInt)
        }
        val pin = Ledger.begin(text("topology"), text("run"), number("epoch"))
        val operators = Parallelism.map { case (name, count) =>
          val of = pin.parallelism.getOrElse(name, count)
          OperatorSketch(name, of, source = name == "read", sink = false, stateful = false, "", repartition = false)
        }
        val sketch = TopologySketch(operators, Nil)
        Ledger.seat(text("topology"), text("run"), number("epoch"), sketch, live)
        Ledger.epochsNow.find(_.topology == text("topology")).get.seated
          .map(s => s"${s.operator}/${s.index}" -> s.executor).toMap.asJava
      case "order" =>
        val places = call.get("places").properties.asScala.map { e =>
          val at = e.getKey.indexOf('/')
          (e.getKey.take(at), e.getKey.drop(at + 1).toInt) -> e.getValue.asText
        }.toMap
        val parallelism = numbers("parallelism").map { case (name, count) => name -> count.toInt }
        Ledger.order(Map(text("topology") -> ((parallelism, places))), Set.empty)
        null
      case "cut" => boxed(Ledger.order(Map.empty, texts("topologies"), numbers("hold_ms")))
      case "release" => Ledger.release(text("topology")); null
      case "await held" => Boolean.box(Ledger.awaitHeld(text("topology"), 1L))
      case "await epoch" => Long.box(Ledger.awaitEpochAfter(text("topology"), number("epoch"), 1L))
      case "rest" => Ledger.rest(texts("topologies")); null
      case "pace" => Ledger.pace(numbers("lengths_ms")); null
      case "forget" => Ledger.forget(text("run")); null
      case "keep only" => Ledger.keepOnly(texts("runs")); null
      case "current" =>
        val now = Ledger.current
        Map(
          "version" -> Long.box(now.version), "cuts" -> boxed(now.cuts), "resting" -> now.resting.toSeq.sorted.asJava,
          "lengths" -> boxed(now.lengths)).asJava
    }
  }

  private def told(orders: TopologyOrders): AnyRef = Map(
    "version" -> Long.box(orders.version),
    "parallelism" -> boxed(orders.parallelism.map { case (name, count) => name -> count.toLong }),
    "places" -> orders.places.map { case ((operator, index), executor) =>
      s"$operator/$index" -> executor
    }.asJava).asJava

  private def boxed(numbers: Map[String, Long]): AnyRef =
    numbers.map { case (name, number) => name -> Long.box(number) }.asJava
}
