package org.apache.spark.barograph.orders

import scala.collection.mutable

/** Where one instance of an epoch was sent and, if that is not what the orders say, why. */
final case class Seated(operator: String, index: Int, executor: String, wanted: String, because: String)

/** Which instance sits where. Knows neither Spark nor a clock. */
object Seating {
  /** By executor, in the order given, the seats that these instances leave. */
  def free(live: Seq[ExecutorSeats], taken: Iterable[Seated]): mutable.LinkedHashMap[String, Int] = {
    val free = mutable.LinkedHashMap(live.map(e => e.id -> e.seats): _*)
    for (s <- taken; left <- free.get(s.executor)) free(s.executor) = left - 1
    free
  }

  /**
   * Gives every instance a seat: the one in its orders (wishes) if it exists and is free; else the one it had; else one
   * on the executor with most room, preferably where instances have run before (warm), because a new executor loads
   * code first and the whole topology waits for it. All wishes are granted before any other seat is given. An instance
   * without a seat has an empty executor. Takes the seats from `free`.
   */
  def seat(
      instances: Seq[(String, Int)],
      wishes: Map[(String, Int), String],
      had: Map[(String, Int), String],
      free: mutable.LinkedHashMap[String, Int],
      warm: Set[String]): Seq[Seated] = {
    def isFree(executor: String): Boolean = free.get(executor).exists(_ > 0)
    def roomiest(among: String => Boolean): Option[String] =
      free.filter { case (id, left) => left > 0 && among(id) }.maxByOption(_._2).map(_._1)
    val granted = instances.map { instance =>
      val wish = wishes.getOrElse(instance, "")
      val ok = isFree(wish)
      if (ok) free(wish) -= 1
      val because =
        if (ok) "" else if (wish.isEmpty) "the plan does not name it"
        else if (!free.contains(wish)) s"executor $wish is gone or avoided" else s"executor $wish has no free seat"
      (instance, wish, ok, because)
    }
    granted.map { case ((operator, index), wish, ok, because) =>
      val executor =
        if (ok) wish
        else had.get((operator, index)).filter(isFree)
          .orElse(roomiest(warm)).orElse(roomiest(_ => true)).getOrElse("")
      if (!ok && executor.nonEmpty) free(executor) -= 1
      Seated(operator, index, executor, wish, because)
    }
  }
}
