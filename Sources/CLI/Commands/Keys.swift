import App
import ArgumentParser

struct Keys: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Print fresh values for the three key variables.")

  func run() {
    print("MUSTER_ACCESS_TOKEN_KEYS=\(SigningKeys.generate())")
    print("MUSTER_REFRESH_TOKEN_KEYS=\(SigningKeys.generate())")
    print("MUSTER_ADDRESS_KEYS=\(SigningKeys.generate())")
  }
}
