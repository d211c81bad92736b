import App
import ArgumentParser

/// A line for the person at the terminal.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
