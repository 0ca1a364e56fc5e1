package org.apache.spark.barograph.messages

import org.apache.spark.barograph.enforce.{Capacity, Enforced}
import org.apache.spark.barograph.kafka.{Topic, TopicSize}
import org.apache.spark.barograph.orders.{HowFar, InstanceKey, Orders, Share}
import org.apache.spark.barograph.telemetry.{LifeReport, MeterReport, ProcessUse}

/**
 * What an executor saw since its last report, the latest orders it has, the executors that it does not reach, the CPU
 * that it may use, how it holds instances to their limits, and the sizes of the topics that are read there.
 */
final case class Report(
    executor: String, heard: Long, lives: Seq[LifeReport], process: ProcessUse, unreachable: Seq[String] = Nil,
    capacity: Capacity = Capacity.unknown, enforced: Enforced = Enforced("", ""), topics: Seq[TopicSize] = Nil)

/**
 * Each message as bytes, and back. From an executor: hello (its name; sent with a reference to its mailbox) and report;
 * the answer to both is the present orders, or null if it has them; and a question for the shuffle's key. From the
 * driver: orders, and three questions.
 */
object Messages {
  def hello(executor: String): Array[Byte] = written(Wire.Hello)(_.text(executor))
  def helloIn(message: Array[Byte]): String = read(message, Wire.Hello)(_.text())

  /** A question to the driver: the key of its application's shuffle. */
  val askKey: Array[Byte] = written(Wire.AskKey)(_ => ())
  def key(key: Array[Byte]): Array[Byte] = written(Wire.Key)(to => to.each(key.toSeq)(to.byte))
  def keyIn(message: Array[Byte]): Array[Byte] = read(message, Wire.Key)(from => from.each(from.byte()).toArray)

  /** A question to an executor; one that is alive answers `here`. */
  val areYouThere: Array[Byte] = written(Wire.AreYouThere)(_ => ())
  val here: Array[Byte] = written(Wire.Here)(_ => ())

  /** A question to an executor; the answer is its report. heard: the last answer to this question was taken. */
  def askReport(heard: Boolean): Array[Byte] = written(Wire.AskReport)(_.flag(heard))
  def askReportIn(message: Array[Byte]): Boolean = read(message, Wire.AskReport)(_.flag())

  /** A question to an executor: how far are the instances of this topology that run there? */
  def askHowFar(topology: String): Array[Byte] = written(Wire.AskHowFar)(_.text(topology))
  def askHowFarIn(message: Array[Byte]): String = read(message, Wire.AskHowFar)(_.text())

  def orders(orders: Orders): Array[Byte] = written(Wire.Orders) { to =>
    to.long(orders.version)
    to.each(orders.cuts) { case (run, epoch) => to.text(run); to.long(epoch) }
    to.each(orders.resting)(to.text)
    to.each(orders.lengths) { case (topology, ms) => to.text(topology); to.long(ms) }
    to.each(orders.shares) { case (i, share) =>
      to.text(i.topology); to.text(i.operator); to.int(i.index)
      to.long(share.limitMilliPct); to.long(share.reservedMilliPct)
    }
    to.text(orders.enforce)
    to.each(orders.sharers) { case (executor, count) => to.text(executor); to.int(count) }
  }

  def ordersIn(message: Array[Byte]): Orders = read(message, Wire.Orders) { from =>
    Orders(
      from.long(), from.each(from.text() -> from.long()).toMap, from.each(from.text()).toSet,
      from.each(from.text() -> from.long()).toMap,
      from.each(InstanceKey(from.text(), from.text(), from.int()) -> Share(from.long(), from.long())).toMap,
      from.text(), from.each(from.text() -> from.int()).toMap)
  }

  def howFar(instances: Seq[HowFar]): Array[Byte] = written(Wire.HowFar) { to =>
    to.each(instances) { i =>
      to.text(i.runId); to.long(i.epoch); to.text(i.operator); to.int(i.index)
      to.flag(i.reads); to.flag(i.waits); to.long(i.taken); to.long(i.sent)
    }
  }

  def howFarIn(message: Array[Byte]): Seq[HowFar] = read(message, Wire.HowFar) { from =>
    from.each(HowFar(
      from.text(), from.long(), from.text(), from.int(), from.flag(), from.flag(), from.long(), from.long()))
  }

  def report(report: Report): Array[Byte] = written(Wire.Report) { to =>
    to.text(report.executor); to.long(report.heard)
    to.long(report.process.cpuNs); to.long(report.process.residentBytes)
    to.each(report.lives) { life =>
      to.text(life.topology); to.text(life.runId); to.long(life.epoch); to.text(life.operator); to.int(life.index)
      to.text(life.executor); to.int(life.pid); to.int(life.tid); to.long(life.startedMs); to.long(life.endedMs)
      to.long(life.rowsRead); to.long(life.outputBefore); to.longs(life.output)
      write(to, life.meter)
    }
    to.each(report.unreachable)(to.text)
    to.text(report.capacity.groupName)
    to.long(report.capacity.groupMilliCores); to.long(report.capacity.allowedMilliCores)
    to.text(report.enforced.way); to.text(report.enforced.because)
    to.each(report.topics) { size => to.text(size.topic.brokers); to.text(size.topic.name); to.int(size.partitions) }
  }

  def reportIn(message: Array[Byte]): Report = read(message, Wire.Report) { from =>
    val executor = from.text()
    val heard = from.long()
    val process = ProcessUse(from.long(), from.long())
    val lives = from.each(LifeReport(
      from.text(), from.text(), from.long(), from.text(), from.int(), from.text(), from.int(), from.int(), from.long(),
      from.long(), from.long(), from.long(), from.longs(), meterIn(from)))
    Report(
      executor, heard, lives, process, from.each(from.text()), Capacity(from.text(), from.long(), from.long()),
      Enforced(from.text(), from.text()), from.each(TopicSize(Topic(from.text(), from.text()), from.int())))
  }

  private def write(to: MessageWriter, meter: MeterReport): Unit = {
    to.long(meter.executed); to.long(meter.emitted); to.long(meter.cpuNs); to.long(meter.busyNs)
    to.long(meter.idleNs); to.long(meter.blockedNs)
    to.longs(meter.sent); to.longs(meter.due); to.longs(meter.read)
    to.long(meter.loadMs); to.long(meter.start); to.long(meter.position); to.long(meter.dueRows)
    to.long(meter.throttledNs); to.long(meter.heldMs); to.longs(meter.record); to.long(meter.dueAgeMs)
  }

  private def meterIn(from: MessageReader): MeterReport = MeterReport(
    from.long(), from.long(), from.long(), from.long(), from.long(), from.long(), from.longs(), from.longs(),
    from.longs(), from.long(), from.long(), from.long(), from.long(), from.long(), from.long(), from.longs(),
    from.long())

  private def written(kind: Byte)(content: MessageWriter => Unit): Array[Byte] = {
    val writer = new MessageWriter(kind)
    content(writer)
    writer.result
  }

  private def read[T](message: Array[Byte], kind: Byte)(content: MessageReader => T): T = {
    val reader = new MessageReader(message, kind)
    val found = content(reader)
    reader.end()
    found
  }
}
