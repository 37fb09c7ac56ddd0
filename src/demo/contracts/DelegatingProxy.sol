// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// A proxy that runs the code of another contract on its own storage. The address of that contract is in a slot that no variable uses.
contract DelegatingProxy {
    /// keccak256("org.zeppelinos.proxy.implementation"), the slot of Circle's proxies.
    bytes32 private constant IMPLEMENTATION = 0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3;

    constructor(address implementation, bytes memory call) {
        assembly {
            sstore(IMPLEMENTATION, implementation)
        }
        (bool done,) = implementation.delegatecall(call);
        require(done, "the first call failed");
    }

    fallback() external payable {
        assembly {
            calldatacopy(0, 0, calldatasize())
            let done := delegatecall(gas(), sload(IMPLEMENTATION), 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if iszero(done) { revert(0, returndatasize()) }
            return(0, returndatasize())
        }
    }

    receive() external payable {}
}
