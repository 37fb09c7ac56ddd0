// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import "./PaymentBatch.sol";

/// What a wallet that makes batches delegates to (EIP-7702): it carries out several calls of its own as one, all or none.
contract DemoAccount is PaymentBatch {
    function run(Call[] calldata calls) public payable override {
        require(msg.sender == address(this), "own calls alone");
        super.run(calls);
    }
}
