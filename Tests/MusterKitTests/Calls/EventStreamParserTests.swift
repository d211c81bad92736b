import Foundation
import Testing

@testable import MusterKit

@Suite struct EventStreamParserTests {
  private static let stream = """
    : open
    retry: 2000
    id: 5

    id: 17
    event: notification
    data: {"a":"ü"}

    event: changed
    data: {"events":"x"}

    : ping


    """
  private static let events = [
    ServerSentEvent(event: "notification", data: #"{"a":"ü"}"#, id: "17"),
    ServerSentEvent(event: "changed", data: #"{"events":"x"}"#, id: "17"),
  ]

  @Test(arguments: ["\n", "\r\n", "\r"], [1, 2, 3, 7, 1000])
  func `events are the same however the bytes are cut and the lines end`(end: String, length: Int) {
    let bytes = Array(Self.stream.replacing("\n", with: end).utf8)
    var parser = EventStreamParser()
    var events: [ServerSentEvent] = []
    for start in stride(from: 0, to: bytes.count, by: length) {
      events += parser.read(Data(bytes[start..<min(start + length, bytes.count)]))
    }
    #expect(events == Self.events)
    #expect(parser.lastEventID == "17")
    #expect(parser.retry == 2000)
  }

  @Test func `several lines of data are one text`() {
    var parser = EventStreamParser()
    let events = parser.read(Data("\u{FEFF}data:one\ndata\ndata:  two\nunknown: x\n\n".utf8))
    #expect(events == [ServerSentEvent(event: "message", data: "one\n\n two", id: nil)])
  }

  @Test func `a block without an id, or with an empty one, keeps the last id`() {
    var parser = EventStreamParser(lastEventID: "7")
    _ = parser.read(Data("event: changed\ndata: {}\n\n: ping\n\nid:\ndata: x\n\nid\ndata: y\n\n".utf8))
    #expect(parser.lastEventID == "7")
  }

  @Test func `a block is complete at its blank line, even without data`() {
    var parser = EventStreamParser()
    _ = parser.read(Data(": open\nretry: 2000\nid: 5\n".utf8))
    #expect(!parser.hasBlock && parser.lastEventID == nil)
    _ = parser.read(Data("\n".utf8))
    #expect(parser.hasBlock && parser.lastEventID == "5")
  }

  @Test func `an id counts only when its event is complete`() {
    var parser = EventStreamParser(lastEventID: "3")
    #expect(parser.read(Data("id: 4\ndata: x\n".utf8)).isEmpty)
    #expect(parser.lastEventID == "3")
    #expect(parser.read(Data("\n".utf8)).map(\.id) == ["4"])
    #expect(parser.lastEventID == "4")
    #expect(parser.read(Data("data: y\n\n".utf8)).map(\.id) == ["4"])
    #expect(parser.read(Data("id: a\0b\ndata: z\n\n".utf8)).map(\.id) == ["4"])
  }

  @Test func `a wait that is not a number is ignored`() {
    var parser = EventStreamParser()
    _ = parser.read(Data("retry: soon\nretry: -1\n\n".utf8))
    #expect(parser.retry == nil)
    _ = parser.read(Data("retry: 60000\nretry: x\n\n".utf8))
    #expect(parser.retry == 60_000)
  }

  @Test func `empty lines of data cannot fill the memory`() {
    var parser = EventStreamParser(maximumBytes: 100)
    #expect(parser.read(Data((String(repeating: "data\n", count: 101) + "\n").utf8)).isEmpty)
    #expect(parser.read(Data((String(repeating: "data\n", count: 100) + "\n").utf8)).count == 1)
  }

  @Test func `an event that is too long is left out, and its id counts`() {
    var parser = EventStreamParser(maximumBytes: 100)
    let long = String(repeating: "x", count: 60)
    #expect(parser.read(Data("id: 1\ndata: \(long)\ndata: \(long)\n\n".utf8)).isEmpty)
    #expect(parser.lastEventID == "1")
    #expect(parser.read(Data("id: 2\ndata: \(long)\(long)\n\n".utf8)).isEmpty)
    #expect(parser.lastEventID == "2")
    #expect(parser.read(Data("data: \(long)\n\n".utf8)).map(\.data) == [long])
  }
}
