import Foundation
import MusterKit
import Testing

@testable import musterctl

@Suite struct JSONTextTests {
  private let value: JSONValue = .object([
    "items": .array([.object(["b": .integer(-7), "a": .string("“1”\n\"2\"\\")]), .array([])]), "none": .null,
    "flag": .bool(true), "place": .double(-9.4215), "empty": .object([:]),
  ])

  @Test func `is indented for people, and one line for streams`() {
    #expect(
      JSONText.of(value) == #"""
        {
          "empty": {},
          "flag": true,
          "items": [
            {
              "a": "“1”\n\"2\"\\",
              "b": -7
            },
            []
          ],
          "none": null,
          "place": -9.4215
        }
        """#)
    #expect(
      JSONText.of(value, isIndented: false)
        == #"{"empty":{},"flag":true,"items":[{"a":"“1”\n\"2\"\\","b":-7},[]],"none":null,"place":-9.4215}"#)
  }

  @Test func `means the same as before`() throws {
    for isIndented in [true, false] {
      let text = JSONText.of(value, isIndented: isIndented)
      #expect(try JSONDecoder.muster().decode(JSONValue.self, from: Data(text.utf8)) == value)
    }
  }
}
